/**
 * What a bus on JetStream is made of and told.
 *
 * Responsibilities: names only. Used by: bus.ts, and ground, which hands part of it on. Separate because it is what the
 * outside knows of this folder before there is a bus.
 */
import type { BusListener } from "../core/bus.ts";
import type { Log } from "../core/log.ts";
import type { Traffic } from "./keeper.ts";
import type { Connections } from "./links.ts";

export interface BusOptions extends Connections {
  /** Told when the bus does not permit what was sent to deliver or settle: the subject. Publishes are answered. */
  readonly denied?: ((subject: string) => void) | undefined;
  readonly stream: string;
  /** First word of every subject: `amqp`. */
  readonly root: string;
  /** The topology's, `amqp` by default. */
  readonly bucket?: string;
  /** Undefined: 1 for a new stream; an existing one keeps its own. */
  readonly replicas?: number | undefined;
  readonly maxBytes?: number | undefined;
  /** JetStream domain. */
  readonly domain?: string | undefined;
  readonly listener: BusListener;
  readonly log: Log;
  /** How long a publish may wait for a leader or an answer, and a reading request for its own, milliseconds. */
  readonly busTimeout?: number;
  /** Octets of publishes under way above which there is no room; the window of {@link InFlight} by default. */
  readonly unconfirmed?: number | undefined;
  /** How long a changing request may take, milliseconds: below the lease (design §4). */
  readonly writeTimeout?: number;
  /** How long a waiting pull lives, milliseconds: no longer than the lease (design §6). */
  readonly pullExpires?: number;
  /** As the connections' own `inboxPrefix`. */
  readonly inboxPrefix?: string;
  /** Shared by every bus of a process on one stream. */
  readonly traffic?: Traffic;
}
