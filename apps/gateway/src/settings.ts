/**
 * The settings as data: each one's environment variable, flag, default and meaning. A flag wins over the environment,
 * the environment over the default. `--help` is printed from this table, and config.ts reads the values that
 * `gatherSettings` collects. Separate from config.ts because this half knows nothing of what a value means.
 */
import { AUTH_SETTINGS, type AuthSettingName } from "./auth-settings.ts";
import { LIMIT_SETTINGS, type LimitSettingName } from "./limit-settings.ts";
import { TLS_SETTINGS, type TlsSettingName } from "./tls-settings.ts";

/** One setting: the same under an environment variable and a flag. */
export interface Setting {
  readonly env: string;
  readonly flag: string;
  /** What stands for the value in `--help`; a setting without one is a switch: on by its bare flag. */
  readonly value?: string;
  /** The value where neither names one; absent: the setting is unset. */
  readonly fallback?: string;
  readonly about: string;
}

/** The name of a setting in this program. */
export type SettingName =
  | "port"
  | "host"
  | TlsSettingName
  | AuthSettingName
  | "natsUrl"
  | "natsCreds"
  | "natsUser"
  | "natsPassword"
  | "natsToken"
  | "natsNkey"
  | "natsCa"
  | "natsCert"
  | "natsKey"
  | "natsTlsFirst"
  | "natsJsDomain"
  | "natsPort"
  | "dataDir"
  | "stream"
  | "bucket"
  | "streamReplicas"
  | "streamMaxBytes"
  | "busTimeout"
  | "workers"
  | LimitSettingName
  | "logLevel";

export const SETTINGS: Readonly<Record<SettingName, Setting>> = {
  port: {
    env: "CLOUD_AMQP_PORT",
    flag: "--port",
    value: "PORT",
    fallback: "5672",
    about: "port that AMQP clients connect to; 0 takes any free one, none leaves only TLS",
  },
  host: {
    env: "AMQP_HOST",
    flag: "--host",
    value: "ADDRESS",
    fallback: "127.0.0.1",
    about: "address to listen on; one that is no loopback address needs AMQP_AUTH or AMQP_ALLOW_ANONYMOUS=1",
  },
  ...TLS_SETTINGS,
  ...AUTH_SETTINGS,
  natsUrl: {
    env: "NATS_URL",
    flag: "--nats-url",
    value: "URL,...",
    about: "servers of the bus; unset: an embedded nats-server",
  },
  natsCreds: { env: "NATS_CREDS", flag: "--nats-creds", value: "FILE", about: "credentials file for the bus" },
  natsUser: { env: "NATS_USER", flag: "--nats-user", value: "NAME", about: "user name for the bus" },
  natsPassword: {
    env: "NATS_PASSWORD",
    flag: "--nats-password",
    value: "WORD",
    about: "its password",
  },
  natsToken: { env: "NATS_TOKEN", flag: "--nats-token", value: "WORD", about: "token for the bus" },
  natsNkey: {
    env: "NATS_NKEY",
    flag: "--nats-nkey",
    value: "SEED",
    about: "nkey seed for the bus, or the file that holds it",
  },
  natsCa: {
    env: "NATS_CA",
    flag: "--nats-ca",
    value: "FILE",
    about: "authorities that the bus's certificate may be of (PEM), instead of this machine's",
  },
  natsCert: {
    env: "NATS_CERT",
    flag: "--nats-cert",
    value: "FILE",
    about: "client certificate for the bus (PEM)",
  },
  natsKey: { env: "NATS_KEY", flag: "--nats-key", value: "FILE", about: "its private key (PEM)" },
  natsTlsFirst: {
    env: "NATS_TLS_FIRST",
    flag: "--nats-tls-first",
    about: "1 for a bus whose TLS handshake comes first (handshake_first)",
  },
  natsJsDomain: { env: "NATS_JS_DOMAIN", flag: "--nats-js-domain", value: "NAME", about: "JetStream domain" },
  natsPort: {
    env: "AMQP_NATS_PORT",
    flag: "--nats-port",
    value: "PORT",
    fallback: "4222",
    about: "port of the embedded nats-server; 0 takes any free one",
  },
  dataDir: {
    env: "AMQP_DATA_DIR",
    flag: "--data-dir",
    value: "FOLDER",
    about: "where the embedded nats-server keeps messages; unset: a per-user data folder",
  },
  stream: { env: "AMQP_STREAM", flag: "--stream", value: "NAME", fallback: "AMQP", about: "stream of the messages" },
  bucket: { env: "AMQP_BUCKET", flag: "--bucket", value: "NAME", fallback: "amqp", about: "bucket of the topology" },
  streamReplicas: {
    env: "AMQP_STREAM_REPLICAS",
    flag: "--stream-replicas",
    value: "1-5",
    about: "copies the bus keeps of both; unset: 1, and existing ones keep what they have",
  },
  streamMaxBytes: {
    env: "AMQP_STREAM_MAX_BYTES",
    flag: "--stream-max-bytes",
    value: "OCTETS",
    about: "size at which a full stream refuses publishes; unset: what the bus allows",
  },
  busTimeout: {
    env: "AMQP_BUS_TIMEOUT",
    flag: "--bus-timeout",
    value: "SECONDS",
    fallback: "30",
    about:
      "how long the bus may be away before clients are disconnected and the port is closed until it is back; a boot waits as long for its leaders",
  },
  workers: {
    env: "AMQP_WORKERS",
    flag: "--workers",
    value: "1-64",
    fallback: "1",
    about: "processes that share the port; each counts as a replica",
  },
  ...LIMIT_SETTINGS,
  logLevel: {
    env: "LOG_LEVEL",
    flag: "--log-level",
    value: "LEVEL",
    fallback: "info",
    about: "fatal, error, warn, info, debug, trace or silent",
  },
};

/** A value and where it was given, as the user wrote it: `--port` or `CLOUD_AMQP_PORT`. */
export interface Given {
  readonly text: string;
  readonly from: string;
}

/** Every setting that has a value. */
export type Gathered = Partial<Record<SettingName, Given>>;

const entries = Object.entries(SETTINGS) as readonly (readonly [SettingName, Setting])[];

/**
 * Collects the settings: flag over environment over default. An empty environment variable counts as unset.
 * @returns the settings, or one line that names the argument nobody knows
 */
export function gatherSettings(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Gathered | string {
  const gathered: Gathered = {};
  for (const [name, setting] of entries) {
    const inEnv = env[setting.env];
    if (inEnv !== undefined && inEnv !== "") gathered[name] = { text: inEnv, from: setting.env };
    else if (setting.fallback !== undefined) gathered[name] = { text: setting.fallback, from: setting.flag };
  }
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] ?? "";
    const equals = word.startsWith("--") ? word.indexOf("=") : -1;
    const flag = equals < 0 ? word : word.slice(0, equals);
    const known = entries.find(([, setting]) => setting.flag === flag);
    if (known === undefined) return `${flag} is no option of amqp-gateway: see --help`;
    const [name, setting] = known;
    if (equals >= 0) gathered[name] = { text: word.slice(equals + 1), from: flag };
    else if (setting.value === undefined) gathered[name] = { text: "1", from: flag };
    else {
      at += 1;
      const text = argv[at];
      if (text === undefined) return `${flag} needs a value: ${flag} ${setting.value}`;
      gathered[name] = { text, from: flag };
    }
  }
  return gathered;
}

/** What `--help` prints. */
export function helpText(): string {
  const rows = entries.map(([, { flag, value, env, fallback, about }]) => ({
    left: `  ${value === undefined ? flag : `${flag} ${value}`}`,
    right: `${about} [${env}${fallback === undefined ? "" : `, default ${fallback}`}]`,
  }));
  rows.push(
    { left: "  --help", right: "print this and exit" },
    { left: "  --version", right: "print the version and exit" },
  );
  const width = Math.max(...rows.map(({ left }) => left.length));
  return [
    "Usage: amqp-gateway [options]",
    "",
    "Serves AMQP 0-9-1 to RabbitMQ clients, over NATS JetStream.",
    "A flag wins over its environment variable, named in brackets.",
    "",
    ...rows.map(({ left, right }) => `${left.padEnd(width)}  ${right}`),
    "",
  ].join("\n");
}
