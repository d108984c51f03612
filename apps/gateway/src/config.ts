/**
 * What the gateway is told to be: command line and environment read into one `Config`, or one line that names what is
 * wrong. Pure: no file is opened and nothing is looked up. Used by main.ts, which prints, and boot.ts, which builds.
 */
import type { Limits } from "@amqp/broker";
import { type AuthConfig, readAuth } from "./auth-config.ts";
import { type BusTls, readBusTls } from "./bus-tls-config.ts";
import { dataFolder, type Machine } from "./folders.ts";
import { readLimits } from "./limit-config.ts";
import { type Gathered, type Given, gatherSettings, helpText } from "./settings.ts";
import { readPlainPort, readTls, type TlsConfig } from "./tls-config.ts";
import { BadSetting, bad, integer, isLoopback, quoted, required, toggle, word } from "./values.ts";

/** How the gateway proves itself to the bus. `creds` is a file; `seed` is a seed or the file that holds it. */
export type Login =
  | { readonly kind: "none" }
  | { readonly kind: "creds"; readonly file: string }
  | { readonly kind: "user"; readonly user: string; readonly password: string }
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "nkey"; readonly seed: string };

/** The bus: a nats-server of the gateway's own, or servers that run elsewhere (`servers` hold no credentials). */
export type BusConfig =
  | { readonly kind: "embedded"; readonly port: number; readonly dataDir: string }
  | {
      readonly kind: "servers";
      readonly servers: readonly string[];
      /** Undefined: TLS where the servers ask for it, by the authorities of this machine. */
      readonly tls: BusTls | undefined;
      readonly login: Login;
      readonly domain: string | undefined;
    };

const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Everything the gateway is told. Ports are 0 for any free one; sizes are octets. */
export interface Config {
  readonly host: string;
  /** Of AMQP without TLS; undefined: nobody is served without. */
  readonly port: number | undefined;
  /** AMQP over TLS; undefined: nobody is served so. One of the two is there. */
  readonly tls: TlsConfig | undefined;
  readonly bus: BusConfig;
  /** Who may connect. */
  readonly auth: AuthConfig;
  readonly stream: string;
  readonly bucket: string;
  /** Copies of stream and bucket; undefined: 1 of new ones, and existing ones keep what they have. */
  readonly streamReplicas: number | undefined;
  /** Octets at which the stream refuses more; undefined: no limit of ours. */
  readonly streamMaxBytes: number | undefined;
  /** Milliseconds that the bus may be away before clients are disconnected. */
  readonly busTimeout: number;
  /** Processes that share the port. */
  readonly workers: number;
  /** What clients may have and cost. */
  readonly limits: Partial<Limits>;
  /** Octets of publishes that the bus has not confirmed before publishers are not read. */
  readonly unconfirmed: number;
  readonly logLevel: LogLevel;
  /** Lines to log as warnings before anything is served. */
  readonly warnings: readonly string[];
}

/** What the command line asks for. An `error` is one line that names the setting and what it may be. */
export type Command =
  | { readonly kind: "run"; readonly config: Config }
  | { readonly kind: "help"; readonly text: string }
  | { readonly kind: "version" }
  | { readonly kind: "error"; readonly text: string };

/** Reads `argv` (without node and script) and the machine's environment. */
export function parseConfig(argv: readonly string[], machine: Machine): Command {
  if (argv.includes("--help") || argv.includes("-h")) return { kind: "help", text: helpText() };
  if (argv.includes("--version")) return { kind: "version" };
  const given = gatherSettings(argv, machine.env);
  if (typeof given === "string") return { kind: "error", text: given };
  try {
    return { kind: "run", config: readConfig(given, machine) };
  } catch (error) {
    if (error instanceof BadSetting) return { kind: "error", text: error.message };
    throw error;
  }
}

function readConfig(given: Gathered, machine: Machine): Config {
  const bus = readBus(given, machine);
  const auth = readAuth(given);
  const { streamReplicas: replicas, streamMaxBytes: maxBytes } = given;
  const streamReplicas = replicas && integer(replicas, 1, 5);
  if (replicas && bus.kind === "embedded" && streamReplicas !== 1) {
    throw bad(replicas, "needs as many servers", { instead: "set NATS_URL to a cluster, or keep 1" });
  }
  const level = required(given, "logLevel");
  const logLevel = LOG_LEVELS.find((name) => name === level.text);
  if (logLevel === undefined) throw bad(level, `is not ${quoted(level)}`, { instead: `use ${LOG_LEVELS.join(", ")}` });
  const tls = readTls(given);
  const port = readPlainPort(given, tls);
  return {
    ...readHost(given, auth, port),
    port,
    tls,
    bus,
    auth,
    stream: word(required(given, "stream")),
    bucket: word(required(given, "bucket")),
    streamReplicas,
    streamMaxBytes: maxBytes && integer(maxBytes, 1, Number.MAX_SAFE_INTEGER),
    busTimeout: integer(required(given, "busTimeout"), 1, 86_400) * 1000,
    workers: integer(required(given, "workers"), 1, 64),
    limits: readLimits(given),
    unconfirmed: integer(required(given, "maxUnconfirmed"), 1, Number.MAX_SAFE_INTEGER),
    logLevel,
  };
}

/** Where it is served, and what is to be warned of there. @throws BadSetting */
function readHost(given: Gathered, auth: AuthConfig, plainPort: number | undefined): Pick<Config, "host" | "warnings"> {
  const address = required(given, "host");
  const host = address.text;
  const warnings: string[] = [];
  // HIP Security: not exposed while nobody is authenticated; loopback is no exposure.
  if (isLoopback(host)) return { host, warnings };
  if (auth.kind === "none") {
    if (!toggle(required(given, "allowAnonymous"))) {
      throw bad(address, `would serve ${host} to anybody, for no client is authenticated`, {
        instead:
          "keep a loopback address, set AMQP_AUTH, or set AMQP_ALLOW_ANONYMOUS=1 where the network lets only trusted clients in",
      });
    }
    warnings.push(
      `${host} is served without authentication (AMQP_ALLOW_ANONYMOUS): every client that reaches it may do everything`,
    );
  } else if (plainPort !== undefined) {
    const what = auth.kind === "jwt" ? "tokens" : "passwords and tokens";
    warnings.push(
      `${host} is served without TLS (AMQP_AUTH=${auth.kind}): the ${what} of clients can be read on their way; ` +
        "set AMQP_TLS_CERT and AMQP_TLS_KEY, and CLOUD_AMQP_PORT=none",
    );
  }
  return { host, warnings };
}

function readBus(given: Gathered, machine: Machine): BusConfig {
  if (given.natsUrl === undefined) {
    const needing = [
      ...(["natsCreds", "natsUser", "natsPassword", "natsToken", "natsNkey", "natsJsDomain"] as const),
      ...(["natsCa", "natsCert", "natsKey", "natsTlsFirst"] as const),
    ];
    for (const name of needing) {
      const alone = given[name];
      if (alone === undefined) continue;
      throw bad(alone, "is for a bus that runs elsewhere", { instead: "set NATS_URL too, or unset it" });
    }
    const dataDir = given.dataDir?.text ?? dataFolder(machine);
    return { kind: "embedded", port: integer(required(given, "natsPort"), 0, 65_535), dataDir };
  }
  const { servers, secure, logins } = readServers(given.natsUrl);
  const login = readLogin(given, logins);
  return {
    kind: "servers",
    servers,
    tls: readBusTls(given, secure),
    login,
    domain: given.natsJsDomain && word(given.natsJsDomain),
  };
}

/** `NATS_URL`: servers separated by commas or blanks, each `[nats://|tls://][user[:password]@]host[:port]`. */
function readServers(given: Given): { servers: string[]; secure: boolean; logins: Login[] } {
  const servers: string[] = [];
  const logins: Login[] = [];
  let secure = false;
  for (const piece of given.text.split(/[\s,]+/).filter((text) => text !== "")) {
    // The text itself is not shown: it may hold a password.
    const url = URL.parse(piece.includes("://") ? piece : `nats://${piece}`);
    if (url === null || url.hostname === "" || !["nats:", "tls:"].includes(url.protocol)) {
      throw bad(given, "holds what is no server's address", { instead: "write nats://host:4222, several with commas" });
    }
    if (url.protocol === "tls:") secure = true;
    servers.push(`${url.protocol}//${url.hostname}:${url.port || "4222"}`);
    const [user, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
    if (user !== "") logins.push(password === "" ? { kind: "token", token: user } : { kind: "user", user, password });
  }
  if (servers.length === 0) throw bad(given, "names no server", { instead: "write nats://host:4222" });
  return { servers, secure, logins };
}

/** One way to log in; two are a mistake that would hide which one the bus sees. */
function readLogin(given: Gathered, fromUrl: readonly Login[]): Login {
  const { natsCreds: creds, natsUser: user, natsPassword: password, natsToken: token, natsNkey: nkey } = given;
  const ways: (readonly [string, Login])[] = [];
  if (creds) ways.push([creds.from, { kind: "creds", file: creds.text }]);
  if (user) ways.push([user.from, { kind: "user", user: user.text, password: password?.text ?? "" }]);
  else if (password) throw bad(password, "comes without a user", { instead: "set NATS_USER too" });
  if (token) ways.push([token.from, { kind: "token", token: token.text }]);
  if (nkey) ways.push([nkey.from, { kind: "nkey", seed: nkey.text }]);
  const [first, second] = ways;
  if (second) throw new BadSetting(`${first?.[0]} and ${second[0]} are two ways to log in to the bus: set one`);
  return first?.[1] ?? fromUrl[0] ?? { kind: "none" };
}
