/**
 * @amqp/broker: an AMQP 0-9-1 server whose queues are JetStream consumers.
 *
 * Responsibilities: the package's public door. `openBroker` composes the bus, the topology, the core and the front end
 * in the order of HIP §5; `apps/gateway` is one user of it, a test or an embedding program another.
 */
export { type BrokerHandle, type OpenOptions, openBroker } from "./open.ts";
export { REFUSALS, type RefusalName } from "./refusals.ts";
