/**
 * The port between replicas: one asks, the other answers.
 *
 * Responsibilities: questions addressed to a replica by its id, answered or known not to be. Used by: fleet, lead.
 * Implemented by: nats/peers. Separate because what replicas say to each other is the core's, how it travels is not.
 * Questions and answers are plain values that survive JSON.
 */

/** Answers this replica's questions; what it throws reaches the asker as a {@link PeerRefused}. */
export type Answerer = (question: string, details: unknown) => Promise<unknown>;

export interface Peers {
  /**
   * Rejects with {@link PeerAbsent} where nobody serves that id, {@link PeerSilent} where no answer came within
   * `patience` milliseconds (what was asked may have been done), {@link PeerRefused} where the answer was an error.
   */
  ask(replica: string, question: string, details: unknown, patience: number): Promise<unknown>;
  /** Answers under this id from now on, instead of any earlier one. */
  serve(replica: string, answer: Answerer): void;
  close(): void;
}

/** Nobody serves that id: the replica is gone, or has not come up. */
export class PeerAbsent extends Error {
  override readonly name: string = "PeerAbsent";
}

/** No answer in time: whether it was done is unknown. */
export class PeerSilent extends Error {
  override readonly name: string = "PeerSilent";
}

/** The other replica could not do it; `code` is the name of the error there. */
export class PeerRefused extends Error {
  override readonly name: string = "PeerRefused";
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}
