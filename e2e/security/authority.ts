// A certificate authority for one test: issues certificates for servers and clients with the system's openssl, into a
// folder that goes with the test. Used by the tests of TLS. Separate because no key is committed to the repository.
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../harness/owned.ts";

/** Paths of PEM files. */
export interface Pair {
  readonly cert: string;
  readonly key: string;
}

/**
 * Why TLS cannot be tried here, or undefined where it can. `AMQP_CLIENTS_REQUIRED=1` (as in CI) makes that an error
 * instead of a reason to skip.
 */
export function missingOpenssl(): string | undefined {
  if (spawnSync("openssl", ["version"], { stdio: "ignore" }).status === 0) return undefined;
  const reason = "openssl is not installed: no certificate can be issued";
  if (process.env.AMQP_CLIENTS_REQUIRED === "1") throw new Error(reason);
  console.warn(`SKIPPED: ${reason}`);
  return reason;
}

export class Authority {
  readonly folder: string = temporaryFolder("authority");
  /** Its own certificate. */
  readonly ca: string = join(this.folder, "ca.pem");
  readonly #key: string = join(this.folder, "ca.key");
  #issued = 0;

  constructor(name = "test authority") {
    const constraints = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"];
    const to = ["-keyout", this.#key, "-out", this.ca];
    openssl("req", "-x509", ...EC, "-nodes", "-days", "2", "-subj", `/CN=${name}`, ...constraints, ...to);
  }

  /** A certificate of that name for `localhost` and 127.0.0.1, for servers and clients; negative days: it has ended. */
  issue(name: string, days = 1): Pair {
    const at = join(this.folder, `${++this.#issued}-${name}`);
    const [cert, key, request, extensions] = [`${at}.pem`, `${at}.key`, `${at}.csr`, `${at}.ext`];
    openssl("req", "-new", ...EC, "-nodes", "-subj", `/CN=${name}`, "-keyout", key, "-out", request);
    writeFileSync(
      extensions,
      "subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\n",
    );
    const signer = ["-CA", this.ca, "-CAkey", this.#key, "-set_serial", `${1000 + this.#issued}`];
    openssl("x509", "-req", "-in", request, ...signer, "-days", `${days}`, "-extfile", extensions, "-out", cert);
    return { cert, key };
  }
}

const EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"] as const;

function openssl(...args: readonly string[]): void {
  execFileSync("openssl", args, { stdio: ["ignore", "ignore", "pipe"] });
}
