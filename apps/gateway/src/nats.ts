/**
 * The gateway's connections to the bus. Two of them (design: more than 64 MiB pending closes a connection as a slow
 * consumer, and that must not take the confirms with it): one for publishes and the topology, one for deliveries. What
 * the bus answers while the gateway boots is put into one line with a remedy. The only file here that knows the NATS
 * client; boot.ts hands the connections on to the packages.
 */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { BusLogin, BusPair } from "@amqp/broker";
import { JetStreamApiError, jetstreamManager } from "@nats-io/jetstream";
import {
  type Authenticator,
  AuthorizationError,
  type ConnectionOptions,
  credsAuthenticator,
  jwtAuthenticator,
  type NatsConnection,
  NoRespondersError,
  nkeyAuthenticator,
  PermissionViolationError,
  RequestError,
  TimeoutError,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
} from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { BootError } from "./boot-error.ts";
import type { BusTls } from "./bus-tls-config.ts";
import type { Login } from "./config.ts";
import type { Logger } from "./log.ts";
import { busTls, explainTls } from "./nats/tls.ts";
import { MINIMUM_VERSION, newEnough } from "./nats-server/version.ts";

/** Where the bus is and how to log in. `servers` hold no credentials: they are shown. */
export interface BusAddress {
  readonly servers: readonly string[];
  /** Undefined: TLS where the servers ask for it. */
  readonly tls: BusTls | undefined;
  readonly login: Login;
  readonly domain: string | undefined;
}

/** The bus, connected. */
export interface BusConnections {
  /** Publishes, JetStream's API, the topology. */
  readonly publishing: NatsConnection;
  /** Pulls and what they bring. */
  readonly delivering: NatsConnection;
  /** Closes both, once; what is still to be sent is sent. */
  close(): Promise<void>;
}

/** How long a server may take to answer while the gateway boots, in milliseconds. */
const TIMEOUT = 5_000;
/** Before it is asked again, milliseconds. */
const PAUSE = 500;

async function connecting(address: BusAddress): Promise<ConnectionOptions> {
  return {
    servers: [...address.servers],
    timeout: TIMEOUT,
    // Once it has been there the bus is waited for: clients are held meanwhile, not thrown out.
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 100,
    pingInterval: 10_000,
    // Each request would record its caller's stack: a tenth of what a declaration costs.
    noAsyncTraces: true,
    ...(await busTls(address.tls)),
  };
}

/** What connects to that bus as a client's login. What it rejects with is the client library's: the broker reads it. */
export function dialer(address: BusAddress, log: Logger): (login: BusLogin) => Promise<BusPair> {
  return async (login) => {
    const options = { ...(await connecting(address)), ...authenticationAs(login) };
    const open: NatsConnection[] = [];
    try {
      for (const use of ["publishing", "delivering"]) {
        const connection = await connect({ ...options, name: `amqp-gateway client ${use}` });
        open.push(connection);
        void logStatus(connection, log.child({ connection: `client ${use}` }));
      }
    } catch (error) {
      await closeAll(open);
      throw error;
    }
    const [publishing, delivering] = open;
    if (publishing === undefined || delivering === undefined) throw new Error("two connections were opened");
    let closed: Promise<void> | undefined;
    const close = (): Promise<void> => {
      closed ??= closeAll(open);
      return closed;
    };
    return { publishing, delivering, close };
  };
}

/** A bus that takes any login makes every client somebody it is not. @throws BootError */
export async function checkLogins(address: BusAddress): Promise<void> {
  const stranger = { user: randomUUID(), pass: randomUUID() };
  const connection = await connect({ ...(await connecting(address)), ...stranger, reconnect: false }).catch(
    () => undefined,
  );
  if (connection === undefined) return;
  await connection.close();
  throw new BootError(
    `the bus at ${address.servers.join(", ")} takes any login`,
    "give it accounts and users (docs/security.md), or set AMQP_AUTH to another mode",
  );
}

/**
 * Connects, and looks whether the bus is one that can carry AMQP.
 * @param patience milliseconds that a cluster may take to elect who answers for JetStream
 * @throws BootError
 */
export async function connectBus(address: BusAddress, log: Logger, patience = 0): Promise<BusConnections> {
  const options: ConnectionOptions = { ...(await connecting(address)), ...(await authentication(address.login)) };
  const open: NatsConnection[] = [];
  try {
    for (const use of ["publishing", "delivering"]) {
      const connection = await connect({ ...options, name: `amqp-gateway ${use}` });
      open.push(connection);
      void logStatus(connection, log.child({ connection: use }));
    }
    const [publishing, delivering] = open;
    if (publishing === undefined || delivering === undefined) throw new Error("two connections were opened");
    const version = publishing.info?.version ?? "";
    if (!newEnough(version)) {
      throw new BootError(
        `the bus at ${address.servers.join(", ")} is nats-server ${version}, too old`,
        `upgrade it to ${MINIMUM_VERSION} or newer, or unset NATS_URL to run the embedded one`,
      );
    }
    const isClustered = publishing.info?.cluster !== undefined;
    await untilAnswered(isClustered ? patience : 0, log, () =>
      jetstreamManager(publishing, { ...(address.domain && { domain: address.domain }), timeout: TIMEOUT }),
    );
    let closed: Promise<void> | undefined;
    const close = (): Promise<void> => {
      closed ??= closeAll(open);
      return closed;
    };
    return { publishing, delivering, close };
  } catch (error) {
    await closeAll(open);
    throw explain(error, address.servers);
  }
}

/** Nobody leads JetStream, or the stream, just now. */
function isUnled({ code }: JetStreamApiError): boolean {
  return code === 10008 || code === 10009;
}

/** Asks again what was not answered in time. */
async function untilAnswered(patience: number, log: Logger, ask: () => Promise<unknown>): Promise<void> {
  for (let end = performance.now() + patience, tries = 1; ; tries++) {
    try {
      await ask();
      return;
    } catch (error) {
      const isPassing = error instanceof TimeoutError || (error instanceof JetStreamApiError && isUnled(error));
      if (!isPassing || performance.now() > end) throw error;
      if (tries === 1) log.warn("JetStream does not answer: the servers may be about to elect a leader; trying again");
    }
    await sleep(PAUSE);
  }
}

/**
 * Puts what the bus answered into one line with a remedy, for the step it was asked in.
 * @param step what was being done, `the stream AMQP`; absent while connecting
 */
export function explain(error: unknown, servers: readonly string[], step?: string): unknown {
  if (error instanceof BootError) return error;
  // What the packages refuse at boot names its remedy itself: a class of theirs, or a plain error.
  if (error instanceof Error && ["BootError", "Error"].includes(error.name) && step !== undefined) {
    return new BootError(error.message, undefined, { cause: error });
  }
  const causes = chain(error);
  const is = <T>(kind: abstract new (...args: never[]) => T): T | undefined =>
    causes.find((cause): cause is T & Error => cause instanceof kind);
  const where = servers.join(", ");
  const during = step === undefined ? "" : ` while preparing ${step}`;
  const because = { cause: error };
  const violation = is(PermissionViolationError);
  if (violation !== undefined) {
    const what = `the bus at ${where} does not permit this login the ${violation.operation} ${violation.subject}${during}`;
    return new BootError(what, "grant it, or use the login of another user (NATS_CREDS, NATS_USER)", because);
  }
  if (is(AuthorizationError)) {
    const remedy = "set NATS_CREDS, NATS_USER and NATS_PASSWORD, NATS_TOKEN or NATS_NKEY to one it knows";
    return new BootError(`the bus at ${where} refuses this login`, remedy, because);
  }
  const tls = explainTls(causes);
  if (tls !== undefined) return new BootError(`the bus at ${where} ${tls.what}`, tls.remedy, because);
  const api = is(JetStreamApiError);
  if (is(NoRespondersError) || api?.code === 10039 || api?.code === 10076) {
    const remedy = "start nats-server with -js, enable it for this account, or correct NATS_JS_DOMAIN";
    return new BootError(`JetStream is off at the bus at ${where}${during}`, remedy, because);
  }
  if (api !== undefined && isUnled(api)) {
    const remedy = "start the majority of its servers, and see nats server report jetstream";
    return new BootError(`JetStream has no leader at the bus at ${where}${during} (${api.message})`, remedy, because);
  }
  if (api?.code === 10058 && step !== undefined) {
    const remedy = "set AMQP_STREAM and AMQP_BUCKET to other names, or delete what has them";
    return new BootError(`the bus at ${where} keeps something else under the name of ${step}`, remedy, because);
  }
  if (api !== undefined) {
    return new BootError(
      `the bus at ${where} refuses${during} (${api.message})`,
      "see nats-server's limits for it",
      because,
    );
  }
  if (is(TimeoutError) && step !== undefined) {
    const remedy = "see whether this login may use $JS.API.> and _INBOX.>, and whether the cluster has a leader";
    return new BootError(`the bus at ${where} does not answer${during}`, remedy, because);
  }
  if (step !== undefined && !(is(RequestError) ?? is(TimeoutError))) return error;
  const last = causes.at(-1)?.message || "no answer";
  // With TLS 1.3 a server hangs up on who has no certificate without saying why.
  const secure = servers.some((server) => server.startsWith("tls:"));
  const certificate = secure ? "set NATS_CERT and NATS_KEY where it asks for a client certificate, " : "";
  const remedy = `start it, correct NATS_URL, ${certificate}or unset NATS_URL to run the embedded one`;
  return new BootError(`the bus at ${where} cannot be reached (${last})`, remedy, because);
}

function chain(error: unknown): readonly Error[] {
  const causes: Error[] = [];
  for (let at = error; at instanceof Error && !causes.includes(at); at = at.cause) causes.push(at);
  return causes;
}

async function authentication(login: Login): Promise<{ authenticator?: Authenticator }> {
  switch (login.kind) {
    case "none":
      return {};
    case "user":
      return { authenticator: usernamePasswordAuthenticator(login.user, login.password) };
    case "token":
      return { authenticator: tokenAuthenticator(login.token) };
    case "creds":
      return { authenticator: credsAuthenticator(await readSecret("NATS_CREDS", login.file)) };
    case "nkey": {
      const seed = /^S[A-Z2-7]{57}$/.test(login.seed)
        ? Buffer.from(login.seed)
        : await readSecret("NATS_NKEY", login.seed);
      return { authenticator: nkeyAuthenticator(new TextEncoder().encode(seed.toString().trim())) };
    }
  }
}

function authenticationAs(login: BusLogin): { authenticator: Authenticator } {
  switch (login.kind) {
    case "user":
      return { authenticator: usernamePasswordAuthenticator(login.user, login.password) };
    case "token":
      return { authenticator: tokenAuthenticator(login.token) };
    case "jwt":
      return { authenticator: jwtAuthenticator(login.jwt, new TextEncoder().encode(login.seed)) };
  }
}

async function readSecret(variable: string, file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    const why = error instanceof Error && "code" in error ? error.code : String(error);
    // Not the file's name: where a seed was meant, that would show it.
    throw new BootError(`${variable} names a file that cannot be read (${why})`, `correct ${variable}`);
  }
}

async function logStatus(connection: NatsConnection, log: Logger): Promise<void> {
  for await (const status of connection.status()) {
    if (status.type === "disconnect") log.warn("the bus is gone: connecting again");
    else if (status.type === "reconnect") log.info({ server: status.server }, "the bus is back");
    else if (status.type === "error") log.warn({ err: status.error }, "the bus complains");
  }
}

async function closeAll(connections: readonly NatsConnection[]): Promise<void> {
  await Promise.allSettled(
    connections.map(async (connection) => {
      if (connection.isClosed()) return;
      // A drain needs the bus; without it the close is what is left.
      const drained = connection.drain().catch(() => connection.close());
      const late = new Promise<void>((resolve) => setTimeout(resolve, TIMEOUT).unref());
      await Promise.race([drained, late]);
      await connection.close();
    }),
  );
}
