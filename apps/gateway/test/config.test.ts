import { describe, expect, it } from "vitest";
import { parseConfig } from "../src/config.ts";
import { SETTINGS } from "../src/settings.ts";
import { config, type Env, error, machine } from "./parsed.ts";

describe("defaults", () => {
  it("serve 127.0.0.1:5672 over an embedded server on 4222", () => {
    expect(config([])).toEqual({
      host: "127.0.0.1",
      port: 5672,
      tls: undefined,
      bus: { kind: "embedded", port: 4222, dataDir: "/home/ada/.local/share/amqp-gateway" },
      auth: { kind: "none" },
      stream: "AMQP",
      bucket: "amqp",
      streamReplicas: undefined,
      streamMaxBytes: undefined,
      busTimeout: 30_000,
      workers: 1,
      limits: {
        connections: 10_000,
        connectionsPerAddress: 10_000,
        connectionsPerUser: 10_000,
        handshakes: 10_000,
        namespaceQueues: 50_000,
        namespaceBindings: 500_000,
        messageSize: 134_217_728,
        unsent: 33_554_432,
        laneOctets: 16_777_216,
        handshakeOctets: 16_384,
        handshakeFrameMax: 16_384,
        loginDelay: 5_000,
        channelMax: 2047,
        consumers: 10_000,
        queues: 10_000,
        bindings: 100_000,
        frameMax: 131_072,
        heartbeat: 60,
        handshake: 10_000,
      },
      unconfirmed: 33_554_432,
      logLevel: "info",
      warnings: [],
    });
  });
});

describe("precedence", () => {
  it("a flag wins over the environment, the environment over the default", () => {
    expect(config([], { CLOUD_AMQP_PORT: "5700" }).port).toBe(5700);
    expect(config(["--port", "0"], { CLOUD_AMQP_PORT: "5700" }).port).toBe(0);
    expect(config(["--port=5701"], { CLOUD_AMQP_PORT: "5700" }).port).toBe(5701);
  });

  it("an empty variable is unset", () => {
    expect(config([], { CLOUD_AMQP_PORT: "", NATS_URL: "" })).toEqual(config([]));
  });

  it("the last of a repeated flag counts", () => {
    expect(config(["--port", "1", "--port", "2"]).port).toBe(2);
  });

  it("every setting has a variable and a flag of its own, and --help shows both", () => {
    const help = parseConfig(["--port", "x", "--help"], machine());
    const text = help.kind === "help" ? help.text : "";
    const settings = Object.values(SETTINGS);
    for (const { env, flag } of settings) {
      expect(text).toContain(` ${flag}`);
      expect(text).toContain(`[${env}`);
    }
    expect(new Set(settings.flatMap(({ env, flag }) => [env, flag])).size).toBe(settings.length * 2);
    expect(parseConfig(["--version"], machine())).toEqual({ kind: "version" });
  });
});

describe("a bad value is an error that names it", () => {
  it.each([
    [["--prot", "1"], {}, "--prot"],
    [["serve"], {}, "serve"],
    [["--port"], {}, "--port needs a value"],
    [["--port", "65536"], {}, '--port is not "65536": use a whole number, 0 to 65535'],
    [["--port=-1"], {}, "--port"],
    [["--port="], {}, "--port"],
    [[], { CLOUD_AMQP_PORT: "amqp" }, "CLOUD_AMQP_PORT"],
    [[], { AMQP_NATS_PORT: "1e3" }, "AMQP_NATS_PORT"],
    [[], { AMQP_STREAM: "a.b" }, "AMQP_STREAM"],
    [["--bucket", "a*"], {}, "--bucket"],
    [[], { AMQP_STREAM_REPLICAS: "6", NATS_URL: "nats://a" }, "AMQP_STREAM_REPLICAS"],
    [[], { AMQP_STREAM_REPLICAS: "3" }, "set NATS_URL to a cluster"],
    [[], { AMQP_STREAM_MAX_BYTES: "0" }, "AMQP_STREAM_MAX_BYTES"],
    [[], { AMQP_BUS_TIMEOUT: "0" }, "AMQP_BUS_TIMEOUT"],
    [["--workers", "0"], {}, "--workers"],
    [[], { AMQP_WORKERS: "two" }, "AMQP_WORKERS"],
    [[], { AMQP_MAX_CHANNELS: "65536" }, "AMQP_MAX_CHANNELS"],
    [[], { AMQP_MAX_CONNECTIONS: "0" }, "AMQP_MAX_CONNECTIONS"],
    [["--frame-max", "4095"], {}, "--frame-max"],
    [[], { AMQP_HANDSHAKE_TIMEOUT: "-1" }, "AMQP_HANDSHAKE_TIMEOUT"],
    [[], { LOG_LEVEL: "loud" }, "LOG_LEVEL"],
    [[], { AMQP_ALLOW_ANONYMOUS: "maybe", AMQP_HOST: "0.0.0.0" }, "AMQP_ALLOW_ANONYMOUS"],
    [[], { NATS_URL: "http://bus:4222" }, "NATS_URL"],
    [[], { NATS_URL: " , " }, "NATS_URL"],
    [[], { NATS_CREDS: "a.creds" }, "NATS_CREDS is for a bus that runs elsewhere"],
    [[], { NATS_URL: "nats://a", NATS_PASSWORD: "hunter2" }, "NATS_USER"],
    [[], { NATS_URL: "nats://a", NATS_TOKEN: "hunter2", NATS_CREDS: "f" }, "NATS_CREDS and NATS_TOKEN are two ways"],
  ] as readonly (readonly [string[], Env, string])[])("%j %j", (argv, env, named) => {
    const text = error(argv, env);
    expect(text).toContain(named);
    expect(text).not.toContain("\n");
    expect(text).not.toContain("hunter2");
  });

  it("shows no password of a URL", () => {
    expect(error([], { NATS_URL: "nats://ada:hunter2@" })).not.toContain("hunter2");
  });
});

describe("limits", () => {
  it("are what is set, times in seconds", () => {
    const { limits, busTimeout, workers, unconfirmed } = config(["--workers", "3", "--heartbeat=0"], {
      AMQP_MAX_CONNECTIONS: "7",
      AMQP_MAX_CHANNELS: "8",
      AMQP_MAX_CONSUMERS: "9",
      AMQP_MAX_QUEUES: "10",
      AMQP_MAX_BINDINGS: "11",
      AMQP_FRAME_MAX: "4096",
      AMQP_HANDSHAKE_TIMEOUT: "3",
      AMQP_BUS_TIMEOUT: "5",
      AMQP_MAX_CONNECTIONS_PER_ADDRESS: "12",
      AMQP_MAX_CONNECTIONS_PER_USER: "13",
      AMQP_MAX_HANDSHAKES: "14",
      AMQP_MAX_NAMESPACE_QUEUES: "15",
      AMQP_MAX_NAMESPACE_BINDINGS: "16",
      AMQP_MAX_MESSAGE_SIZE: "17",
      AMQP_MAX_UNSENT: "18",
      AMQP_MAX_WAITING: "19",
      AMQP_MAX_UNCONFIRMED: "20",
      AMQP_HANDSHAKE_OCTETS: "4097",
      AMQP_LOGIN_DELAY: "0",
    });
    expect({ workers, busTimeout }).toEqual({ workers: 3, busTimeout: 5000 });
    expect(unconfirmed).toBe(20);
    expect(limits).toEqual({
      connections: 7,
      channelMax: 8,
      consumers: 9,
      queues: 10,
      bindings: 11,
      frameMax: 4096,
      heartbeat: 0,
      handshake: 3000,
      connectionsPerAddress: 12,
      connectionsPerUser: 13,
      handshakes: 14,
      namespaceQueues: 15,
      namespaceBindings: 16,
      messageSize: 17,
      unsent: 18,
      laneOctets: 19,
      handshakeOctets: 4097,
      handshakeFrameMax: 4097,
      loginDelay: 0,
    });
  });
});

describe("the bus", () => {
  it("is one or several servers, their credentials cut out of what is shown", () => {
    const { bus } = config([], { NATS_URL: "nats://ada:p%40ss@a:4333, b,c", NATS_JS_DOMAIN: "hub" });
    expect(bus).toEqual({
      kind: "servers",
      servers: ["nats://a:4333", "nats://b:4222", "nats://c:4222"],
      tls: undefined,
      login: { kind: "user", user: "ada", password: "p@ss" },
      domain: "hub",
    });
  });

  it.each([
    [{ NATS_CREDS: "f.creds" }, { kind: "creds", file: "f.creds" }],
    [
      { NATS_USER: "u", NATS_PASSWORD: "p" },
      { kind: "user", user: "u", password: "p" },
    ],
    [{ NATS_TOKEN: "t" }, { kind: "token", token: "t" }],
    [{ NATS_NKEY: "n" }, { kind: "nkey", seed: "n" }],
    [{}, { kind: "none" }],
  ] as readonly (readonly [Env, object])[])("logs in by %j", (env, login) => {
    expect(config(["--nats-url", "tls://a"], env).bus).toMatchObject({
      tls: { first: false },
      servers: ["tls://a:4222"],
      login,
    });
  });

  it("a token may stand in the URL, and a variable wins over it", () => {
    expect(config(["--nats-url", "nats://t0ken@a"]).bus).toMatchObject({ login: { kind: "token", token: "t0ken" } });
    expect(config(["--nats-url", "nats://t0ken@a"], { NATS_USER: "u" }).bus).toMatchObject({ login: { kind: "user" } });
  });
});
