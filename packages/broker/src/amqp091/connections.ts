/**
 * The connections of a listener: makes them, counts them, and opens and closes the door with the bus.
 *
 * Used by: server.ts. Separate because a connection knows nothing of the others beside it.
 */

import type { Doorkeeper } from "../core/doorkeeper.ts";
import type { Log } from "../core/log.ts";
import type { FrontEnd, Verbs } from "../core/verbs.ts";
import { refuse } from "../refusals.ts";
import { Audience } from "./audience.ts";
import type { Census } from "./census.ts";
import { Connection } from "./connection.ts";
import type { Limits } from "./limits.ts";
import type { Suspicion } from "./suspicion.ts";
import type { Transport } from "./transport.ts";

export interface ConnectionsOptions {
  readonly doorkeeper: Doorkeeper;
  /** Both of the process, for all of its ports. */
  readonly census: Census;
  readonly suspicion: Suspicion;
  readonly log: Log;
  readonly limits: Limits;
  /** Told to clients in connection.start. */
  readonly version: string;
  readonly clusterName: string;
  /** Told when no more transports shall be accepted, and when they shall again. */
  accepting(accepts: boolean): void;
}

export class Connections implements FrontEnd {
  readonly doorkeeper: Doorkeeper;
  readonly census: Census;
  readonly suspicion: Suspicion;
  readonly log: Log;
  readonly limits: Limits;
  readonly version: string;
  readonly clusterName: string;
  readonly #accepting: (accepts: boolean) => void;
  readonly #connections: Set<Connection> = new Set<Connection>();
  readonly #ending: Set<Promise<void>> = new Set<Promise<void>>();
  readonly #audiences: Map<Verbs, Audience> = new Map<Verbs, Audience>();
  #made = 0;

  constructor(options: ConnectionsOptions) {
    this.doorkeeper = options.doorkeeper;
    this.census = options.census;
    this.suspicion = options.suspicion;
    this.log = options.log;
    this.limits = options.limits;
    this.version = options.version;
    this.clusterName = options.clusterName;
    this.#accepting = (accepts) => options.accepting(accepts);
    this.doorkeeper.join(this);
  }

  get size(): number {
    return this.#connections.size;
  }

  /** A transport was accepted; undefined where even a refusal would cost too much. */
  accept(transport: Transport): Connection | undefined {
    const connection = new Connection(`${++this.#made}`, transport, this);
    if (!this.census.arrived(connection, this.limits)) {
      connection.drop("too many sockets are open");
      return undefined;
    }
    this.#connections.add(connection);
    return connection;
  }

  /** A connection ends; `given` resolves when everything it had is given back. */
  ended(connection: Connection, given: Promise<void>): void {
    this.#connections.delete(connection);
    this.#ending.add(given);
    void given.finally(() => this.#ending.delete(given));
  }

  /** The connections that use these verbs. */
  audienceOf(verbs: Verbs): Audience {
    let audience = this.#audiences.get(verbs);
    if (audience === undefined) {
      audience = new Audience(verbs, () => this.#audiences.delete(verbs));
      this.#audiences.set(verbs, audience);
    }
    return audience;
  }

  blocked(): void {
    // Each audience hears it from its own verbs.
  }

  room(): void {
    // As above.
  }

  closing(reason: string): void {
    this.#accepting(false);
    this.#refuseAll(reason);
  }

  serving(): void {
    this.#accepting(true);
  }

  /** Closes all with 320 and resolves when everything is given back. */
  async close(reason: string): Promise<void> {
    this.#refuseAll(reason);
    await Promise.all(this.#ending);
    this.doorkeeper.leave(this);
  }

  #refuseAll(reason: string): void {
    for (const connection of [...this.#connections]) connection.refuse(refuse("forced", { text: reason }));
  }
}
