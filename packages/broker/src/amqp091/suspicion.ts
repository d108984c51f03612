/**
 * How fast an address may try logins after some have failed (design §9): each further one waits its turn, longer and
 * longer, so that to guess is slow however many sockets are opened at once.
 *
 * Used by: server (one a process), handshake, handlers/connection. Separate because it is pure: it is told the time. A
 * login that succeeds forgives nothing, or whoever knows one password could guess others in between. Time does.
 */

/** Logins that may fail before anything waits: people mistype, and clients try again. */
const FREE = 3;
/** Milliseconds of the first wait; it doubles with each failure. */
const FIRST = 250;
/** Milliseconds without a failure after which all is forgotten. */
const FORGET = 60_000;
/** Addresses that are remembered; beyond it the one that failed longest ago is forgotten. */
const MOST = 10_000;

interface Record {
  failures: number;
  last: number;
  /** When the next login may be looked at. */
  next: number;
}

export class Suspicion {
  readonly #longest: number;
  readonly #records: Map<string, Record> = new Map<string, Record>();

  /** @param longest milliseconds between two logins of an address at most; 0: nobody waits. */
  constructor(longest: number) {
    this.#longest = longest;
  }

  /** A login from there failed. */
  failed(origin: string, now: number): void {
    const record = this.#fresh(origin, now) ?? { failures: 0, last: now, next: now };
    record.failures++;
    record.last = now;
    record.next = Math.max(record.next, now + this.#step(record));
    this.#records.delete(origin);
    this.#records.set(origin, record);
    if (this.#records.size > MOST) {
      for (const [oldest] of this.#records) {
        this.#records.delete(oldest);
        break;
      }
    }
  }

  /**
   * Milliseconds that a login from there has to wait before it is looked at, and then has its turn; undefined where that
   * is longer than its patience, and it has none.
   */
  wait(origin: string, now: number, patience: number): number | undefined {
    const record = this.#fresh(origin, now);
    if (record === undefined || record.failures < FREE) return 0;
    const at = Math.max(now, record.next);
    if (at - now > patience) return undefined;
    record.next = at + this.#step(record);
    return at - now;
  }

  #step({ failures }: Record): number {
    return failures < FREE ? 0 : Math.min(FIRST * 2 ** (failures - FREE), this.#longest);
  }

  #fresh(origin: string, now: number): Record | undefined {
    const record = this.#records.get(origin);
    if (record === undefined || now - record.last < FORGET) return record;
    this.#records.delete(origin);
    return undefined;
  }
}
