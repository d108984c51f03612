// Gathers the body frames of one message into few pieces.
// The command assembler adds each frame's payload and takes the pieces once the body is whole. Separate because of
// what it guards: a body sent one octet a frame would otherwise cost a hundred times its size in views.
// Large payloads are kept as they came (no copy); small ones that follow one another are copied together.

/** Payloads of fewer octets are copied together, larger ones kept by reference. */
const SMALL = 2048;
const GATHERED = 4096;

/** The body of a message while its frames arrive. */
export class Body {
  readonly #pieces: Uint8Array[] = [];
  #tail: Uint8Array | undefined; // being filled with small payloads
  #tailLength = 0;

  /** Adds a payload; `remaining` is how many octets of the body are missing, this payload included. */
  add(payload: Uint8Array, remaining: number): void {
    if (payload.length === 0) return;
    const whole = payload.length === remaining && this.#tail === undefined;
    if (payload.length >= SMALL || whole) {
      this.#closeTail();
      this.#pieces.push(payload);
      return;
    }
    if (this.#tail !== undefined && this.#tailLength + payload.length > this.#tail.length) this.#closeTail();
    this.#tail ??= Buffer.allocUnsafe(Math.min(remaining, GATHERED));
    this.#tail.set(payload, this.#tailLength);
    this.#tailLength += payload.length;
  }

  /** The pieces in order; nothing may be added after it. */
  take(): readonly Uint8Array[] {
    this.#closeTail();
    return this.#pieces;
  }

  #closeTail(): void {
    if (this.#tail === undefined) return;
    this.#pieces.push(this.#tail.subarray(0, this.#tailLength));
    this.#tail = undefined;
    this.#tailLength = 0;
  }
}
