/**
 * Which deliveries are flagged as redelivered: what was written to a socket before, as far as it is known.
 *
 * Responsibilities: the bus counts attempts, but it also counts what was handed back unwritten, and it forgets the
 * last of its counting when it restarts (design §5). Used by: queue. Separate because it is pure.
 */

/** How many handed-back messages are remembered; a forgotten one is flagged, which is the safe side. */
const REMEMBERED = 10_000;
const REMEMBERED_STRAYS = 16;

export class Redelivery {
  /** Handed back unwritten: sequence to the attempts counted then. In the order of handing back. */
  readonly #unwritten: Map<number, number> = new Map<number, number>();
  /** What left the bus once and never came here: sequences above `above`, up to `upTo`. */
  readonly #strays: { readonly above: number; readonly upTo: number }[] = [];
  #suspectBelow: number;
  #highestWritten = 0;

  /** `suspectBelow`: sequences at or below it may have been written before this process began. */
  constructor(suspectBelow: number) {
    this.#suspectBelow = suspectBelow;
  }

  /** May a client have seen it? `attempts` is 1 on the first delivery that the bus remembers. */
  isRedelivered(sequence: number, attempts: number): boolean {
    if (sequence <= this.#suspectBelow) return true;
    if (attempts <= 1) return false;
    const unwritten = this.#unwritten.get(sequence) ?? (this.#isStray(sequence) ? 1 : 0);
    return attempts > unwritten + 1;
  }

  /**
   * A pull was taken back while the bus was answering it: of the sequences above `above`, up to `upTo`, those that did
   * not come had their first attempt for nobody. The caller saw nothing above `above`, and neither did anybody else.
   */
  strayed(above: number, upTo: number): void {
    const from = Math.max(above, this.#highestWritten);
    if (upTo <= from) return;
    this.#strays.push({ above: from, upTo });
    if (this.#strays.length > REMEMBERED_STRAYS) this.#strays.shift();
  }

  /** It goes to a client now. */
  wrote(sequence: number): void {
    if (sequence > this.#highestWritten) this.#highestWritten = sequence;
    if (this.#unwritten.size > 0) this.#unwritten.delete(sequence);
  }

  /** It came and goes back without having been written; not remembered if it may have been written earlier. */
  handedBack(sequence: number, attempts: number): void {
    if (this.isRedelivered(sequence, attempts)) return;
    this.#unwritten.delete(sequence);
    this.#unwritten.set(sequence, attempts);
    if (this.#unwritten.size <= REMEMBERED) return;
    for (const oldest of this.#unwritten.keys()) {
      this.#unwritten.delete(oldest);
      return;
    }
  }

  #isStray(sequence: number): boolean {
    for (const { above, upTo } of this.#strays) if (sequence > above && sequence <= upTo) return true;
    return false;
  }

  /** The highest sequence that went to a client of this process. */
  get highestWritten(): number {
    return this.#highestWritten;
  }

  /** Other replicas wrote up to here before the bus lost its latest counting. */
  suspect(sequence: number): void {
    if (sequence > this.#suspectBelow) this.#suspectBelow = sequence;
  }

  /** The bus lost its latest counting: whatever was written until now may come again as if it were new. */
  busRestarted(): void {
    if (this.#highestWritten > this.#suspectBelow) this.#suspectBelow = this.#highestWritten;
  }
}
