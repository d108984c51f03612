/**
 * TLS towards the bus, read from the settings, which have the names of the NATS tools; the files are read by nats.ts
 * whenever it connects. Used by config.ts. Separate because it is the gateway's side of another listener's TLS.
 */
import type { Gathered } from "./settings.ts";
import { bad, toggle } from "./values.ts";

/** Demands TLS of the bus. Paths of PEM files. */
export interface BusTls {
  /** Authorities of its certificate; undefined: this machine's. */
  readonly ca: string | undefined;
  /** The gateway's own certificate and its key. */
  readonly identity: { readonly cert: string; readonly key: string } | undefined;
  /** The handshake comes before the server says anything. */
  readonly first: boolean;
}

/** @param secure an address says `tls://`. @throws BadSetting */
export function readBusTls(given: Gathered, secure: boolean): BusTls | undefined {
  const { natsCa: ca, natsCert: cert, natsKey: key } = given;
  const first = given.natsTlsFirst !== undefined && toggle(given.natsTlsFirst);
  const alone = cert === undefined ? key : key === undefined ? cert : undefined;
  if (alone !== undefined) {
    throw bad(alone, "is half of a pair", { instead: "set NATS_CERT and NATS_KEY, or neither" });
  }
  if (!secure && !first && ca === undefined && cert === undefined) return undefined;
  const identity = cert && key && { cert: cert.text, key: key.text };
  return { ca: ca?.text, identity, first };
}
