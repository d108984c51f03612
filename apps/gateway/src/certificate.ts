/**
 * The certificate that the gateway shows to AMQP clients: read from its files, checked, and read again when they change
 * (design: a certificate that is renewed must not cost a connection). Used by boot.ts and ports.ts. Separate because
 * files, their faults and their changes are no matter of a broker, which takes PEM texts.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import type { TlsOptions } from "@amqp/broker";
import { BootError } from "./boot-error.ts";
import type { Logger } from "./log.ts";
import type { TlsConfig } from "./tls-config.ts";

/** Milliseconds between two looks at the files; a look is a stat of each. */
const INTERVAL = 2_000;
/** A certificate that ends within so many milliseconds is worth a warning. */
const SOON = 14 * 24 * 3_600_000;

/** What the files hold. @throws BootError with the setting that names the file, and the remedy */
export async function readCertificate(files: TlsConfig): Promise<TlsOptions> {
  const [cert, key, ca] = await Promise.all([
    readPem("AMQP_TLS_CERT", files.cert),
    readPem("AMQP_TLS_KEY", files.key),
    files.ca === undefined ? undefined : readPem("AMQP_TLS_CA", files.ca),
  ]);
  const leaf = parse("AMQP_TLS_CERT", files.cert, "certificate", "-----BEGIN CERTIFICATE-----", () => {
    return new X509Certificate(cert);
  });
  const fits = parse("AMQP_TLS_KEY", files.key, "private key without a passphrase", "openssl pkey writes one", () => {
    return leaf.checkPrivateKey(createPrivateKey(key));
  });
  if (!fits) {
    const what = `the key in ${files.key} (AMQP_TLS_KEY) does not fit the certificate in ${files.cert} (AMQP_TLS_CERT)`;
    throw new BootError(what, "name the pair that was issued together, the server's own certificate first in its file");
  }
  if (ca !== undefined && files.ca !== undefined) {
    parse("AMQP_TLS_CA", files.ca, "certificate", "-----BEGIN CERTIFICATE-----", () => new X509Certificate(ca));
  }
  return { cert, key, requireClientCertificate: files.verify, ...(ca === undefined ? {} : { ca }) };
}

async function readPem(variable: string, file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const why = error instanceof Error && "code" in error ? error.code : String(error);
    const remedy = `correct ${variable}, or let this user read it`;
    throw new BootError(`the file ${file} of ${variable} cannot be read (${why})`, remedy, { cause: error });
  }
}

function parse<T>(variable: string, file: string, what: string, how: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const remedy = `correct ${variable}: a PEM file (${how})`;
    throw new BootError(`the file ${file} of ${variable} holds no ${what}`, remedy, { cause: error });
  }
}

/** Follows the files of a certificate that is served. */
export class CertificateWatch {
  readonly #files: TlsConfig;
  readonly #log: Logger;
  readonly #serve: (certificate: TlsOptions) => void;
  readonly #timer: NodeJS.Timeout;
  #seen = "";
  #looking: Promise<void> | undefined;

  /** @param serve takes the new certificate for the connections to come; throws where it cannot be served */
  private constructor(files: TlsConfig, log: Logger, serve: (certificate: TlsOptions) => void) {
    this.#files = files;
    this.#log = log;
    this.#serve = serve;
    this.#timer = setInterval(() => void this.#look(), INTERVAL);
    this.#timer.unref();
  }

  /** Follows the files from now on; `certificate` is what is served now. */
  static async start(
    files: TlsConfig,
    certificate: TlsOptions,
    log: Logger,
    serve: (certificate: TlsOptions) => void,
  ): Promise<CertificateWatch> {
    const watch = new CertificateWatch(files, log, serve);
    watch.#seen = await fingerprint(files);
    tell(log, certificate, "the certificate is read");
    return watch;
  }

  /** Reads the files now, changed or not. Never rejects: what cannot be served is logged, and the old one stays. */
  async reload(): Promise<void> {
    await this.#looking;
    this.#seen = await fingerprint(this.#files);
    await this.#read();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#looking !== undefined) return;
    this.#looking = this.#readChanged();
    await this.#looking;
    this.#looking = undefined;
  }

  async #readChanged(): Promise<void> {
    const now = await fingerprint(this.#files);
    if (now === this.#seen) return;
    this.#seen = now;
    await this.#read();
  }

  async #read(): Promise<void> {
    try {
      const certificate = await readCertificate(this.#files);
      this.#serve(certificate);
      tell(this.#log, certificate, "the certificate is read again: connections from now on are shown it");
    } catch (error) {
      // Half of a pair may be written yet: the other half changes the files again.
      const why = error instanceof Error ? error.message : String(error);
      this.#log.error(`the certificate stays as it was: ${why}`);
    }
  }
}

/** What changes when a file is written, replaced, or a link to it is. */
async function fingerprint({ cert, key, ca }: TlsConfig): Promise<string> {
  const files = [cert, key, ...(ca === undefined ? [] : [ca])];
  const states = await Promise.all(files.map((file) => stat(file).catch(() => undefined)));
  return states.map((state) => (state ? `${state.ino} ${state.size} ${state.mtimeMs}` : "none")).join(",");
}

function tell(log: Logger, { cert }: TlsOptions, what: string): void {
  const { subject, validTo, fingerprint256 } = new X509Certificate(cert);
  const left = Date.parse(validTo) - Date.now();
  const fields = { subject: subject?.replaceAll("\n", ", "), validTo, fingerprint: fingerprint256 };
  log.info(fields, what);
  if (left < 0) log.warn(fields, `the certificate ended on ${validTo}: clients will refuse it`);
  else if (left < SOON) log.warn(fields, `the certificate ends on ${validTo}: renew it`);
}
