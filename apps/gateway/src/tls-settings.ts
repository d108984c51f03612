/**
 * The settings of AMQP over TLS, as data. Used by settings.ts, whose table they are part of. Separate so that one file
 * holds what belongs to TLS towards clients.
 */
import type { Setting } from "./settings.ts";

/** The name of a setting of AMQP over TLS. */
export type TlsSettingName = "tlsCert" | "tlsKey" | "tlsCa" | "tlsPort" | "tlsVerify";

export const TLS_SETTINGS: Readonly<Record<TlsSettingName, Setting>> = {
  tlsCert: {
    env: "AMQP_TLS_CERT",
    flag: "--tls-cert",
    value: "FILE",
    about:
      "certificate and what is between it and its root (PEM): serves AMQP over TLS too; read again when it changes",
  },
  tlsKey: { env: "AMQP_TLS_KEY", flag: "--tls-key", value: "FILE", about: "its private key (PEM)" },
  tlsPort: {
    env: "AMQP_TLS_PORT",
    flag: "--tls-port",
    value: "PORT",
    about: "port of AMQP over TLS; 0 takes any free one; unset: 5671",
  },
  tlsVerify: {
    env: "AMQP_TLS_VERIFY",
    flag: "--tls-verify",
    value: "WHAT",
    fallback: "none",
    about: "none, or require: only clients with a certificate of AMQP_TLS_CA",
  },
  tlsCa: {
    env: "AMQP_TLS_CA",
    flag: "--tls-ca",
    value: "FILE",
    about: "authorities of client certificates (PEM)",
  },
};
