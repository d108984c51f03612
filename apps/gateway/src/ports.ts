/**
 * The ports that AMQP clients connect to: the plain one, the one with TLS, or both, with the certificate that the latter
 * shows. Used by boot.ts and workers.ts. Separate because a port is opened last, and refused in its own words.
 */
import { type BrokerHandle, findFreePort, type ListenOptions } from "@amqp/broker";
import { BootError } from "./boot-error.ts";
import { CertificateWatch, readCertificate } from "./certificate.ts";
import type { Config } from "./config.ts";
import type { Logger } from "./log.ts";
import type { Steps } from "./steps.ts";
import type { TlsConfig } from "./tls-config.ts";
import { readVersion } from "./version.ts";

/** What is open. */
export interface Ports {
  /** Undefined: nobody is served without TLS. */
  readonly port: number | undefined;
  /** Undefined: nobody is served with TLS. */
  readonly tlsPort: number | undefined;
  /** Reads the certificate again; what cannot be served is logged, and the old one stays. */
  reload(): Promise<void>;
}

const PLAIN = "CLOUD_AMQP_PORT";
const SECURE = "AMQP_TLS_PORT";

/** Looks whether they can be had, before what takes its time is started for them. @throws BootError */
export async function probePorts({ host, port, tls }: Config): Promise<void> {
  if (tls !== undefined) await free(host, tls.port, SECURE);
  if (port !== undefined) await free(host, port, PLAIN);
}

/** The same ports for several processes: where any free one is wanted, one. @throws BootError */
export async function fixPorts({ host, port, tls }: Config): Promise<Pick<Ports, "port" | "tlsPort">> {
  return {
    port: port === 0 ? await free(host, port, PLAIN) : port,
    tlsPort: tls?.port === 0 ? await free(host, tls.port, SECURE) : tls?.port,
  };
}

function free(host: string, port: number, setting: string): Promise<number> {
  return findFreePort(host, port).catch(refusedPort(host, port, setting));
}

/** Opens them. @throws BootError */
export async function openPorts(config: Config, broker: BrokerHandle, log: Logger, steps: Steps): Promise<Ports> {
  const { host, limits } = config;
  const listen = (port: number, tls?: ListenOptions["tls"]) =>
    steps.take(() =>
      broker
        .listen({ host, port, limits, version: readVersion(), ...(tls === undefined ? {} : { tls }) })
        .catch(refusedPort(host, port, tls === undefined ? PLAIN : SECURE)),
    );
  const secure = config.tls && (await openTls(config.tls, listen, log, steps));
  const plain = config.port === undefined ? undefined : await listen(config.port);
  return { port: plain?.port, tlsPort: secure?.port, reload: async () => secure?.watch.reload() };
}

async function openTls(
  tls: TlsConfig,
  listen: (port: number, tls: ListenOptions["tls"]) => ReturnType<BrokerHandle["listen"]>,
  log: Logger,
  steps: Steps,
): Promise<{ readonly port: number; readonly watch: CertificateWatch }> {
  const certificate = await steps.take(() => readCertificate(tls));
  const listening = await listen(tls.port, certificate);
  const watch = await steps.take(
    () => CertificateWatch.start(tls, certificate, log, (renewed) => listening.renew(renewed)),
    async (started) => started.stop(),
  );
  return { port: listening.port, watch };
}

/** Puts what the system answered to a listen into one line with a remedy. */
function refusedPort(host: string, port: number, setting: string): (error: unknown) => never {
  return (error) => {
    const because = { cause: error };
    if (error instanceof Error && error.name === "CertificateError") {
      const remedy = "issue another one, or correct AMQP_TLS_CERT, AMQP_TLS_KEY and AMQP_TLS_CA";
      throw new BootError(`TLS does not take the certificate (${error.message})`, remedy, because);
    }
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    const another = `set ${setting} to another port (0 takes any free one)`;
    if (code === "EADDRINUSE") {
      throw new BootError(`port ${port} on ${host} is taken`, `stop what listens there, or ${another}`, because);
    }
    if (code === "EACCES") throw new BootError(`port ${port} may not be used by this user`, another, because);
    if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
      throw new BootError(`${host} is no address of this machine`, "correct AMQP_HOST", because);
    }
    throw error;
  };
}
