/**
 * A message as the core knows it: where it was published, opaque properties, a body.
 *
 * Responsibilities: the shapes of messages on their way in and out. Used by the whole broker.
 * Separate because every front end must agree on them and none may own them: nothing here is of a wire.
 */

/** Properties as the publisher's front end encoded them; the core carries them and does not read them. */
export type Properties = Uint8Array;

/** How a delivered message ends. */
export type Outcome =
  /** Done with: gone from the queue. */
  | "complete"
  /** Back into the queue, for whoever comes. */
  | "requeue"
  /** Rejected for good: gone from the queue. */
  | "discard";

/** A message as a queue hands it out. */
export interface Delivery {
  /** Its place in the log; rises with publish order; unique in the stream. */
  readonly sequence: number;
  readonly exchange: string;
  readonly routingKey: string;
  readonly properties: Properties;
  readonly body: Uint8Array;
  /** It may have been seen by a client before. */
  readonly redelivered: boolean;
  /**
   * Ends it. Once, and only by whoever it was delivered to; ignored for a delivery without
   * acknowledgement and for one that this replica lost the right to (its lease lapsed).
   */
  settle(outcome: Outcome): void;
}
