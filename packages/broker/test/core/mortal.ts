/**
 * A replica that dies after its n-th write reached the bus: what it asks after that is never answered; or one that is
 * cut off there for a while, and then hears every answer at once.
 */
import type { Bucket } from "@amqp/topology";
import type { Bus } from "../../src/core/bus.ts";
import type { Between } from "./rig.ts";

/** What changes something on the bus; leases are refreshed apart from it. */
const WRITES: ReadonlySet<string> = new Set([
  "create",
  "update",
  "remove",
  "createCursor",
  "updateCursor",
  "deleteCursor",
  "collect",
]);

export class Mortality implements Between {
  /** The writes since {@link arm}, by name. */
  readonly written: string[] = [];
  #left = Number.POSITIVE_INFINITY;
  #die: () => void = () => undefined;
  #isDead: boolean = false;
  #revive: () => void = () => undefined;
  readonly #revived: Promise<void> = new Promise((resolve) => {
    this.#revive = resolve;
  });
  /** Resolves when it is dead. */
  readonly dead: Promise<void> = new Promise((resolve) => {
    this.#die = resolve;
  });

  /** From now on count, and die after that many; forever, if that is not said. */
  arm(writes: number = Number.POSITIVE_INFINITY): void {
    this.written.length = 0;
    this.#left = writes;
    if (writes === 0) this.#end();
  }

  /** What it asked meanwhile is asked now. */
  revive(): void {
    this.#isDead = false;
    this.#left = Number.POSITIVE_INFINITY;
    this.#revive();
  }

  bus(bus: Bus): Bus {
    return this.#wrap(bus);
  }

  bucket(bucket: Bucket): Bucket {
    return this.#wrap(bucket);
  }

  #end(): void {
    this.#isDead = true;
    this.#die();
  }

  #wrap<T extends object>(port: T): T {
    return new Proxy(port, {
      get: (target, name) => {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== "function") return member;
        return (...given: unknown[]): unknown => {
          if (this.#isDead) return this.#revived.then(() => member.apply(target, given) as unknown);
          const answer: unknown = member.apply(target, given);
          return answer instanceof Promise ? this.#answered(answer, String(name)) : answer;
        };
      },
    });
  }

  async #answered(answer: Promise<unknown>, name: string): Promise<unknown> {
    const value = await answer;
    if (!this.#isDead && WRITES.has(name)) {
      this.written.push(name);
      if (--this.#left === 0) this.#end();
    }
    if (this.#isDead) await this.#revived;
    return value;
  }
}
