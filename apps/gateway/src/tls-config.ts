/**
 * AMQP over TLS, read from the settings; the files themselves are certificate.ts's. Used by config.ts. Separate because
 * half of a TLS configuration is a mistake, never plain text.
 */
import type { Gathered, SettingName } from "./settings.ts";
import { bad, integer, quoted, required } from "./values.ts";

/** AMQP over TLS. Paths of PEM files. */
export interface TlsConfig {
  /** 0: any free one. */
  readonly port: number;
  readonly cert: string;
  readonly key: string;
  readonly ca: string | undefined;
  /** Clients must have a certificate that `ca` signed. */
  readonly verify: boolean;
}

/** IANA's port of amqps. */
const AMQPS = 5671;

/** Undefined where no certificate is named. @throws BadSetting */
export function readTls(given: Gathered): TlsConfig | undefined {
  const { tlsCert: cert, tlsKey: key, tlsCa: ca, tlsPort: port } = given;
  const verify = required(given, "tlsVerify");
  if (verify.text !== "none" && verify.text !== "require") {
    throw bad(verify, `is not ${quoted(verify)}`, { instead: "use none or require" });
  }
  const requires = verify.text === "require";
  if (cert === undefined || key === undefined) {
    const alone = cert ?? key ?? ca ?? port ?? (requires ? verify : undefined);
    if (alone === undefined) return undefined;
    throw bad(alone, "is for TLS, which needs a certificate and its key", {
      instead: "set AMQP_TLS_CERT and AMQP_TLS_KEY",
    });
  }
  if (requires && ca === undefined) {
    throw bad(verify, "asks for client certificates of nobody", { instead: "name their authority in AMQP_TLS_CA" });
  }
  if (!requires && ca !== undefined) {
    throw bad(ca, "is not used while no client certificate is asked for", { instead: "set AMQP_TLS_VERIFY=require" });
  }
  return {
    port: port === undefined ? AMQPS : integer(port, 0, 65_535),
    cert: cert.text,
    key: key.text,
    ca: ca?.text,
    verify: requires,
  };
}

/** The port without TLS; `none` where there is to be none. @throws BadSetting */
export function readPlainPort(given: Gathered, tls: TlsConfig | undefined): number | undefined {
  const name: SettingName = "port";
  const port = required(given, name);
  if (port.text === "none") {
    if (tls !== undefined) return undefined;
    throw bad(port, "is none, and there is no TLS: nobody is served", {
      instead: "set AMQP_TLS_CERT and AMQP_TLS_KEY",
    });
  }
  const number = integer(port, 0, 65_535);
  if (tls !== undefined && number !== 0 && number === tls.port) {
    throw bad(port, "is the port of TLS too", { instead: "set CLOUD_AMQP_PORT or AMQP_TLS_PORT to another" });
  }
  return number;
}
