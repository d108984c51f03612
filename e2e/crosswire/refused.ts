// One refusal over a real socket: how it is provoked and what must come back. refusals.test.ts runs the cases of
// not-implemented.ts, wrong.ts and connection-refusals.ts through here. Separate so that a case is only what differs: a name of
// the table, what was sent, and the words of its remedy.

import { REFUSALS, type RefusalName } from "@amqp/broker";
import { type MethodName, methodName, ReplyCode } from "@amqp/codec";
import { expect } from "vitest";
import { AmqpSocket } from "../harness/socket.ts";

/** Where the gateway listens. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** What a case has to work with. */
export interface Scene {
  readonly at: Address;
  /** The socket that is to be refused. */
  readonly socket: AmqpSocket;
  /** An unused name. */
  name(): string;
  /** Another connection with channel 1 open; ends with the case. */
  another(): Promise<AmqpSocket>;
}

export interface Case {
  /** What the client does, for the test's name. */
  readonly when: string;
  /** How far the handshake has come before: channel 1 is open by default. */
  readonly from?: "socket" | "connection" | "channel";
  /** The refused method, whose class and method the answer carries; `none` where no method was at fault. */
  readonly method: MethodName | "none";
  /** Words of the sentence: the rule, and what to do instead. */
  readonly says: RegExp;
  readonly provoke: (scene: Scene) => unknown;
  /** Milliseconds until the refusal is due. */
  readonly within?: number;
  /** Settings of a gateway of its own, where the ordinary limits are out of reach. */
  readonly env?: Readonly<Record<string, string>>;
}

let scenes = 0;

/** Provokes a refusal and checks every part of the answer, and what is left of channel and connection. */
export async function checkRefusal(at: Address, name: RefusalName, refused: Case): Promise<void> {
  const { code, scope } = REFUSALS[name];
  const prefix = `refused-${process.pid}-${scenes++}-`;
  const sockets: AmqpSocket[] = [];
  let names = 0;
  const socket = await openSocket(at, refused.from ?? "channel");
  try {
    await refused.provoke({
      at,
      socket,
      name: () => `${prefix}${names++}`,
      another: async () => {
        const other = await openSocket(at, "channel");
        sockets.push(other);
        return other;
      },
    });
    const close = await socket.expect(scope === "channel" ? "channel.close" : "connection.close", refused.within);
    expect(close.replyCode).toBe(code);
    expect(close.replyText).toMatch(refused.says);
    expect(close.replyText.startsWith(`${codeName(code)} - `), close.replyText).toBe(true);
    expect(Buffer.byteLength(close.replyText)).toBeLessThanOrEqual(255);
    expect(methodName(close.classId, close.methodId) ?? "none").toBe(refused.method);
    if (scope === "channel") await channelClosedOnly(socket);
    else await connectionClosed(socket);
  } finally {
    for (const each of [socket, ...sockets]) each.destroy();
    await tidy(at, prefix, names);
  }
}

/** HIP §4: the connection survives, and both the same number and another one can be opened. */
async function channelClosedOnly(socket: AmqpSocket): Promise<void> {
  socket.send(1, "channel.close-ok", {});
  await socket.channel(1);
  await socket.channel(2);
  socket.publish(2, { routingKey: "nobody-at-all", mandatory: true }, "still here");
  await socket.expect("basic.return");
  expect((await socket.expectContent()).body.toString()).toBe("still here");
}

/** After close-ok nothing more comes, and the socket is dropped. */
async function connectionClosed(socket: AmqpSocket): Promise<void> {
  socket.send(0, "connection.close-ok", {});
  expect(await socket.expectClosed()).toEqual([]);
}

async function openSocket(at: Address, from: NonNullable<Case["from"]>): Promise<AmqpSocket> {
  if (from === "socket") return AmqpSocket.connect(at);
  const socket = await AmqpSocket.open(at);
  if (from === "channel") await socket.channel(1);
  return socket;
}

function codeName(code: number): string {
  return Object.entries(ReplyCode).find(([, value]) => value === code)?.[0] ?? "";
}

async function tidy(at: Address, prefix: string, names: number): Promise<void> {
  if (names === 0) return;
  const janitor = await openSocket(at, "channel");
  for (let number = 0; number < names; number++) {
    const name = `${prefix}${number}`;
    // An exclusive queue of a connection that was just dropped may still be there for a moment: it goes by itself.
    janitor.send(1, "exchange.delete", { exchange: name });
    await janitor.expect("exchange.delete-ok");
  }
  janitor.destroy();
}
