/**
 * The port to what a login may do on the bus, asked of the bus itself: it is tried, and nothing is decided here (HIP,
 * Security Considerations: no second policy engine).
 *
 * Used by: auth/permitted-verbs. Implemented by: nats/rights. Separate because the core does not know how the bus says no.
 */

/** Each resolves to the subject that is not permitted, or to undefined where all that is needed is. */
export interface Rights {
  /** To write that key of the topology's bucket. Nothing is written. */
  toWrite(key: string): Promise<string | undefined>;
  /** To take messages of that queue and to settle them. Nothing is taken. */
  toConsume(queue: string): Promise<string | undefined>;
}
