/**
 * A lane: the commands of one channel run one after another (design §2).
 *
 * Responsibilities: keeping commands in order while an earlier one waits for the bus, and running them on without a
 * promise while none does. Other channels have lanes of their own and go on.
 * Used by: channel. Separate because order is a law of its own, tested alone. How much may wait is the connection's to
 * bound: it is told of each command that begins and ceases to wait.
 */

/** Told how much waits. */
export interface LaneListener {
  waiting(commands: number, octets: number): void;
}

interface Waiting<C> {
  readonly command: C;
  readonly octets: number;
}

export class Lane<C> {
  readonly #run: (command: C) => Promise<void> | undefined;
  readonly #held: () => boolean;
  readonly #listener: LaneListener;
  #waiting: Waiting<C>[] = [];
  #first = 0;
  #pending: boolean = false;
  #running: boolean = false;
  #stopped: boolean = false;

  /**
   * @param run runs one command; the promise it may return never rejects, and the next command waits for it.
   * @param held while it says true no command begins; {@link Lane.go} goes on afterwards.
   */
  constructor(run: (command: C) => Promise<void> | undefined, held: () => boolean, listener: LaneListener) {
    this.#run = run;
    this.#held = held;
    this.#listener = listener;
  }

  /** Commands that wait. */
  get length(): number {
    return this.#waiting.length - this.#first;
  }

  /** A command waits for the bus. */
  get pending(): boolean {
    return this.#pending;
  }

  /** The next command; `octets` is how much it holds while it waits. */
  push(command: C, octets: number): void {
    if (this.#stopped) return;
    if (!this.#pending && !this.#running && this.length === 0 && !this.#held()) {
      this.#begin(command);
      if (this.length > 0) this.go();
      return;
    }
    this.#waiting.push({ command, octets });
    this.#listener.waiting(1, octets);
  }

  /** Goes on after `held` had said true. */
  go(): void {
    if (this.#running) return;
    while (!this.#pending && !this.#stopped && this.length > 0 && !this.#held()) this.#begin(this.#shift());
  }

  /** Takes the commands that wait right behind the one that runs, as long as they fit: to be done in one step with it. */
  takeNext<D extends C>(fits: (command: C) => command is D): D[] {
    const taken: D[] = [];
    for (let next = this.#waiting[this.#first]; next !== undefined; next = this.#waiting[this.#first]) {
      const { command } = next;
      if (!fits(command)) break;
      this.#shift();
      taken.push(command);
    }
    return taken;
  }

  /** Nothing more runs; what waits is dropped, and given back. */
  stop(): C[] {
    this.#stopped = true;
    const dropped: C[] = [];
    while (this.length > 0) dropped.push(this.#shift());
    return dropped;
  }

  #begin(command: C): void {
    this.#running = true;
    const promise = this.#run(command);
    this.#running = false;
    if (promise === undefined) return;
    this.#pending = true;
    void promise.then(() => {
      this.#pending = false;
      this.go();
    });
  }

  #shift(): C {
    const { command, octets } = this.#waiting[this.#first++] as Waiting<C>;
    if (this.#first === this.#waiting.length || this.#first > 1024) {
      this.#waiting = this.#waiting.slice(this.#first);
      this.#first = 0;
    }
    this.#listener.waiting(-1, -octets);
    return command;
  }
}
