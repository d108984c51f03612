// A process that stands still in the middle of a turn, as one that is stopped by a signal does.

/** The loop runs nothing for so many milliseconds. */
export function standStill(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
