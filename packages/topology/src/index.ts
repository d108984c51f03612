/**
 * The public door of @amqp/topology: the topology bucket, its mirror, and leases in it. What is not listed here is
 * internal.
 */
export {
  type Bucket,
  type BucketListener,
  BucketSilent,
  type Entry,
  type Permit,
  type Watch,
  type Written,
} from "./bucket.ts";
export type {
  Binding,
  BindingRecord,
  Exchange,
  ExchangeRecord,
  Fleet,
  Interval,
  Owner,
  Queue,
  QueueRecord,
  ReplicaRecord,
  Stored,
} from "./entities.ts";
export { Fence } from "./fence.ts";
export {
  type BindingPlace,
  bindingKey,
  exchangeKey,
  FLEET_KEY,
  LEADER_KEY,
  type ParsedKey,
  parseKey,
  queueKey,
  replicaKey,
} from "./keys.ts";
export { Lease, type LeaseOptions } from "./lease.ts";
export type { TopologyListener } from "./mirror.ts";
export { type BucketOptions, openBucket } from "./nats.ts";
export { Topology, type TopologyOptions } from "./topology.ts";
