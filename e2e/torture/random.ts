// Random numbers that a seed decides: every actor of a torture run draws from a stream of its own, so that what one of
// them does never depends on how fast another one is. Used by every actor and by the faults' schedule. Separate
// because reproducibility is exactly this.

/** A stream of random numbers. */
export interface Random {
  /** In [0, 1). */
  next(): number;
  /** A whole number from `least` to `most`, both included. */
  integer(least: number, most: number): number;
  /** True with this probability. */
  chance(probability: number): boolean;
  /** One of them; there must be one. */
  pick<T>(of: readonly T[]): T;
}

/** The stream named `name` of this seed: sfc32 over a hash of both. */
export function randomOf(seed: number, name: string): Random {
  let [a, b, c, d] = [hash(`${seed} ${name} a`), hash(`${seed} ${name} b`), hash(`${seed} ${name} c`), 1];
  const next = (): number => {
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + t) | 0;
    return (t >>> 0) / 4_294_967_296;
  };
  for (let warm = 0; warm < 12; warm++) next();
  const integer = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1));
  return {
    next,
    integer,
    chance: (probability) => next() < probability,
    pick: <T>(of: readonly T[]): T => {
      if (of.length === 0) throw new Error("nothing to pick from");
      return of[integer(0, of.length - 1)] as T;
    },
  };
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value | 0;
}
