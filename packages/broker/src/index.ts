/**
 * @amqp/broker: an AMQP 0-9-1 server whose queues are JetStream consumers.
 *
 * Responsibilities: the package's public door. `openBroker` composes the bus, the topology, the core and the front end
 * in the order of HIP §5; `apps/gateway` is one user of it, a test or an embedding program another.
 */
export type { Counters } from "./amqp091/census.ts";
export { DEFAULT_LIMITS, type Limits } from "./amqp091/limits.ts";
export { ALGORITHMS as TOKEN_ALGORITHMS } from "./auth/tokens.ts";
export type { Log, LogLine } from "./core/log.ts";
export { WINDOW_OCTETS as UNCONFIRMED_OCTETS } from "./nats/in-flight.ts";
export { type NotImplemented, notImplemented } from "./not-implemented.ts";
export { type AuthOptions, type OpenOptions, openBroker } from "./open.ts";
export { type AccountsOptions, type BusLogin, type BusPair, openAccounts } from "./open-accounts.ts";
export type { BrokerHandle, PlaceOptions } from "./place.ts";
export { REFUSALS, type RefusalName, type RefusalRow } from "./refusals.ts";
export { CertificateError, type TlsOptions } from "./server/tls.ts";
export { findFreePort, type Listening, type ListenOptions } from "./server.ts";
