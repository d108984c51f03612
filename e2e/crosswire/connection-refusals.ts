// How a client provokes each refusal that closes its connection: in the handshake, with frames that may not come, with
// more than it may have. Rows by the names of the broker's table of refusals; run by refusals.test.ts.

import type { RefusalName } from "@amqp/broker";
import { FrameType, fromPlain, PROTOCOL_HEADER } from "@amqp/codec";
import type { Handshake } from "../harness/socket.ts";
import { announce } from "./declaring.ts";
import type { Case, Scene } from "./refused.ts";

const START_OK = { clientProperties: fromPlain({}), locale: "en_US" };

/** The handshake up to tune-ok, with these values. */
async function tune({ socket }: Scene, how: Handshake): Promise<void> {
  await socket.login();
  socket.tune(how);
}

export const CONNECTION: Partial<Record<RefusalName, readonly Case[]>> = {
  "login-refused": [
    {
      when: "asks for a mechanism that was not offered",
      from: "socket",
      method: "connection.start-ok",
      says: /mechanism EXTERNAL/,
      provoke: ({ socket }) => socket.start({ mechanism: "EXTERNAL", response: "" }),
    },
  ],
  "login-malformed": [
    {
      when: "answers PLAIN with nonsense",
      from: "socket",
      method: "connection.start-ok",
      says: /PLAIN is malformed/,
      provoke: ({ socket }) => socket.start({ response: "guest:guest" }),
    },
    {
      when: "answers AMQPLAIN with a table cut short",
      from: "socket",
      method: "connection.start-ok",
      says: /AMQPLAIN is malformed/,
      provoke: ({ socket }) => socket.start({ mechanism: "AMQPLAIN", response: "\x05LOGINS\0\0\0\xff" }),
    },
  ],
  "tune-too-high": [{ channelMax: 2048 }, { channelMax: 0 }, { frameMax: 131_073 }, { frameMax: 0 }].map((how) => ({
    when: `tunes ${JSON.stringify(how)}`,
    from: "socket" as const,
    method: "connection.tune-ok" as const,
    says: /higher than the maximum allowed value/,
    provoke: (scene: Scene) => tune(scene, how),
  })),
  "tune-too-low": [
    {
      when: "tunes a frame-max of 4095",
      from: "socket",
      method: "connection.tune-ok",
      says: /frame_max = 4095 is lower than the minimum allowed value/,
      provoke: (scene) => tune(scene, { frameMax: 4095 }),
    },
  ],
  "no-vhost": [
    {
      when: "opens another vhost",
      from: "socket",
      method: "connection.open",
      says: /vhost nope not found/,
      provoke: async (scene) => {
        await tune(scene, {});
        scene.socket.send(0, "connection.open", { virtualHost: "nope" });
      },
    },
  ],
  "handshake-late": [
    {
      when: "says nothing after the protocol header",
      from: "socket",
      method: "none",
      says: /answer the handshake sooner/,
      within: 15_000,
      provoke: async ({ socket }) => {
        socket.write(Buffer.from(PROTOCOL_HEADER));
        await socket.expect("connection.start");
      },
    },
  ],
  "handshake-too-long": [
    {
      when: "sends 24 KiB before it is known",
      from: "socket",
      method: "none",
      says: /octets came before connection.open/,
      provoke: async ({ socket }) => {
        socket.write(Buffer.from(PROTOCOL_HEADER));
        await socket.expect("connection.start");
        for (let frame = 0; frame < 3_072; frame++) socket.frame(FrameType.HEARTBEAT, 0, new Uint8Array(0));
      },
    },
  ],
  "channel-not-open": [
    {
      when: "uses a channel that was never opened",
      method: "basic.get",
      says: /expected 'channel\.open'/,
      provoke: ({ socket }) => socket.send(5, "basic.get", { queue: "q" }),
    },
  ],
  "channel-opened-twice": [
    {
      when: "opens it again",
      method: "channel.open",
      says: /second 'channel\.open' seen/,
      provoke: ({ socket }) => socket.send(1, "channel.open", {}),
    },
  ],
  "channel-number": [
    {
      when: "opens one above what was agreed",
      from: "socket",
      method: "channel.open",
      says: /channel 9 is higher than the negotiated channel_max \(8\)/,
      provoke: async (scene) => {
        await tune(scene, { channelMax: 8 });
        scene.socket.send(0, "connection.open", { virtualHost: "/" });
        await scene.socket.expect("connection.open-ok");
        scene.socket.send(9, "channel.open", {});
      },
    },
  ],
  "unexpected-method": [
    {
      when: "opens the connection again",
      from: "connection",
      method: "connection.open",
      says: /unexpected method in connection state running/,
      provoke: ({ socket }) => socket.send(0, "connection.open", { virtualHost: "/" }),
    },
    {
      when: "opens before it tunes",
      from: "socket",
      method: "connection.open",
      says: /unexpected method/,
      provoke: async ({ socket }) => {
        await socket.login();
        socket.send(0, "connection.open", { virtualHost: "/" });
      },
    },
    {
      when: "tunes before it starts",
      from: "socket",
      method: "connection.tune-ok",
      says: /unexpected method/,
      provoke: async ({ socket }) => {
        socket.write(Buffer.from(PROTOCOL_HEADER));
        await socket.expect("connection.start");
        socket.tune();
      },
    },
    {
      when: "starts twice",
      from: "socket",
      method: "connection.start-ok",
      says: /unexpected method/,
      provoke: async ({ socket }) => {
        await socket.login();
        socket.send(0, "connection.start-ok", { ...START_OK, mechanism: "PLAIN", response: "\0a\0b" });
      },
    },
  ],
  "unimplemented-method": (
    ["queue.declare-ok", "channel.open-ok", "basic.get-empty", "confirm.select-ok"] as const
  ).map((method) => ({
    when: `sends ${method}, which is the server's`,
    method,
    says: /unimplemented method/,
    provoke: ({ socket }: Scene) => socket.send(1, method, {}),
  })),
  "unexpected-frame": [
    {
      when: "sends a heartbeat on a channel",
      method: "none",
      says: /type 8 on channel 1/,
      provoke: ({ socket }) => socket.frame(FrameType.HEARTBEAT, 1, new Uint8Array(0)),
    },
    {
      when: "sends a content header on channel 0",
      method: "none",
      says: /type 2 on channel 0/,
      provoke: ({ socket }) => socket.frame(FrameType.HEADER, 0, Buffer.alloc(14)),
    },
  ],
  "malformed-heartbeat": [
    {
      when: "fills a heartbeat",
      method: "none",
      says: /a heartbeat has no payload/,
      provoke: ({ socket }) => socket.frame(FrameType.HEARTBEAT, 0, Buffer.alloc(1)),
    },
  ],
  "consumer-tag-in-use": [
    {
      when: "consumes twice under one tag",
      method: "basic.consume",
      says: /reuse consumer tag 't'/,
      provoke: async ({ socket }) => {
        socket.send(1, "queue.declare", { exclusive: true });
        await socket.expect("queue.declare-ok");
        socket.send(1, "basic.consume", { consumerTag: "t" });
        await socket.expect("basic.consume-ok");
        socket.send(1, "basic.consume", { consumerTag: "t" });
      },
    },
  ],
  silent: [
    {
      when: "agrees on a heartbeat and says nothing",
      from: "socket",
      method: "none",
      says: /missed heartbeats from client, timeout: 1s/,
      provoke: async (scene) => {
        await tune(scene, { heartbeat: 1 });
        scene.socket.send(0, "connection.open", { virtualHost: "/" });
        await scene.socket.expect("connection.open-ok");
      },
    },
  ],
  "too-many-connections": [
    {
      when: "opens one more than there may be",
      from: "socket",
      method: "connection.open",
      says: /connection limit \(1\) is reached/,
      env: { AMQP_MAX_CONNECTIONS: "1" },
      provoke: async (scene) => {
        await scene.another();
        await tune(scene, {});
        scene.socket.send(0, "connection.open", { virtualHost: "/" });
      },
    },
  ],
  "too-many-from-address": [
    {
      when: "opens one more than its address may have",
      from: "socket",
      method: "connection.open",
      says: /connection limit \(1\) of this address is reached; close other connections first/,
      env: { AMQP_MAX_CONNECTIONS_PER_ADDRESS: "1" },
      provoke: async (scene) => {
        await scene.another();
        await tune(scene, {});
        scene.socket.send(0, "connection.open", { virtualHost: "/" });
      },
    },
  ],
  "too-many-of-user": [
    {
      when: "opens one more than its user may have",
      from: "socket",
      method: "connection.open",
      says: /connection limit \(1\) of this user is reached; close other connections first/,
      env: { AMQP_MAX_CONNECTIONS_PER_USER: "1" },
      provoke: async (scene) => {
        await scene.another();
        await tune(scene, {});
        scene.socket.send(0, "connection.open", { virtualHost: "/" });
      },
    },
  ],
  "too-much-assembling": [
    {
      when: "announces 140 MiB on twenty channels",
      from: "connection",
      method: "basic.publish",
      says: /send them one after another/,
      provoke: ({ socket }) => announce(socket, 20, 7 * 1024 * 1024),
    },
  ],
};

/** What no client can provoke here, and where it is tried instead. */
export const ELSEWHERE: Partial<Record<RefusalName, string>> = {
  "not-permitted": "a login whose rights the bus decides: e2e/security/modes-nats.test.ts",
  forced: "the gateway's own stop: e2e/durability/restart.test.ts",
  bug: "a bug; that one is answered so is tried in packages/broker",
  "stood-still": "a process that stands still in the middle of a turn: packages/broker/test/amqp091/standing.test.ts",
  "bus-silent": "a bus that is there and does not answer: packages/broker",
  "login-expired": "takes a token: e2e/security/modes.test.ts",
  "secret-refused": "takes a token: e2e/security/modes.test.ts",
};
