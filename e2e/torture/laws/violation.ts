// What a law says when it is broken. Separate so that laws and reports share it and nothing else.

/** One breach, with what a reader needs to find it in the history. */
export interface Violation {
  readonly law: string;
  readonly text: string;
  readonly message?: string;
  readonly queue?: string;
  /** When, where no message tells it. */
  readonly at?: number;
}
