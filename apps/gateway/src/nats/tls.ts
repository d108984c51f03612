/**
 * TLS towards the bus: the NATS client's options, and what went wrong with it in one line. Used by nats.ts. Separate
 * because certificates have faults of their own, each with its own remedy.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { TlsOptions } from "@nats-io/nats-core";
import { BootError } from "../boot-error.ts";
import type { BusTls } from "../bus-tls-config.ts";

/**
 * With TLS demanded, a server that offers none is refused before the login goes out. The client reads the files at each
 * connect, so a renewed certificate counts from the next one on; here they are only looked at. @throws BootError
 */
export async function busTls(tls: BusTls | undefined): Promise<{ tls?: TlsOptions }> {
  if (tls === undefined) return {};
  const { ca, identity, first } = tls;
  if (ca !== undefined) {
    const authorities = await read("NATS_CA", ca);
    if (attempt(() => new X509Certificate(authorities)) === undefined) {
      throw new BootError(`the file ${ca} of NATS_CA holds no certificate`, "correct NATS_CA: a PEM file");
    }
  }
  if (identity !== undefined) {
    const cert = await read("NATS_CERT", identity.cert);
    const key = await read("NATS_KEY", identity.key);
    if (attempt(() => new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) !== true) {
      const what = `the key in ${identity.key} (NATS_KEY) does not fit the certificate in ${identity.cert} (NATS_CERT)`;
      throw new BootError(what, "name two PEM files that were issued together, the key without a passphrase");
    }
  }
  return {
    tls: {
      ...(ca === undefined ? {} : { caFile: ca }),
      ...(identity === undefined ? {} : { certFile: identity.cert, keyFile: identity.key }),
      ...(first ? { handshakeFirst: true } : {}),
    },
  };
}

/** Undefined where TLS is not what failed. */
export function explainTls(causes: readonly Error[]): { readonly what: string; readonly remedy: string } | undefined {
  for (const cause of causes) {
    const code = "code" in cause ? String(cause.code) : "";
    if (cause.message.includes("does not support 'tls'")) {
      return {
        what: "offers no TLS, which was asked for",
        remedy: "turn it on there, or write nats:// and unset NATS_CA",
      };
    }
    if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
      const what = `shows a certificate of another name (${cause.message})`;
      return { what, remedy: "write in NATS_URL the name that it has" };
    }
    if (/^CERT_|SELF_SIGNED|UNABLE_TO_(VERIFY|GET)/.test(code)) {
      const what = `shows a certificate that is not trusted (${cause.message})`;
      return { what, remedy: "name its authority in NATS_CA, or renew it" };
    }
    if (/ALERT_(CERTIFICATE|BAD_CERTIFICATE|UNKNOWN_CA)|BAD_CERTIFICATE/.test(code)) {
      const what = `does not take the gateway's certificate (${code})`;
      return { what, remedy: "set NATS_CERT and NATS_KEY to one that its authority signed" };
    }
  }
  return undefined;
}

function attempt<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}

async function read(variable: string, file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    const why = error instanceof Error && "code" in error ? error.code : String(error);
    const remedy = `correct ${variable}, or let this user read it`;
    throw new BootError(`the file ${file} of ${variable} cannot be read (${why})`, remedy, { cause: error });
  }
}
