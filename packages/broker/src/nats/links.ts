/**
 * The bus's connections taken as one: present while each of them is up.
 *
 * Responsibilities: when the bus is away and when it is back, and whether a server started anew meanwhile.
 * Used by: bus.ts. Separate because "is the bus there?" has one answer, whichever connection is lost first.
 */
import type { NatsConnection } from "@nats-io/nats-core";
import type { BusListener } from "../core/bus.ts";
import type { Log } from "../core/log.ts";
import { Link } from "./link.ts";

export type LinkUse = keyof Connections;

/** The bus is away before the first of its connections is `down`, and back after the last of them is `up`. */
export interface LinksListener extends Pick<BusListener, "away" | "back"> {
  down(use: LinkUse): void;
  up(use: LinkUse): void;
  /** The server does not permit the login of that connection what was sent to the subject. */
  denied(use: LinkUse, subject: string): void;
}

export interface Connections {
  /** Carries publishes only. Both should reconnect for ever (`maxReconnectAttempts: -1`) and stay the caller's. */
  readonly publishing: NatsConnection;
  readonly delivering: NatsConnection;
  /** Carries API requests; `delivering` by default. Another login's, where that of the others may not make them. */
  readonly api?: NatsConnection | undefined;
}

export class Links {
  readonly publishing: Link;
  readonly delivering: Link;
  /** `delivering` where API requests have no connection of their own. */
  readonly api: Link;
  readonly #listener: LinksListener;
  #present: boolean = true;
  #incarnation: string;

  constructor({ publishing, delivering, api }: Connections, listener: LinksListener, log: Log) {
    this.#listener = listener;
    this.publishing = this.#link(publishing, "publishing", log);
    this.delivering = this.#link(delivering, "delivering", log);
    this.api = api === undefined ? this.delivering : this.#link(api, "api", log);
    this.#incarnation = this.#identity();
  }

  get present(): boolean {
    return this.#present;
  }

  /** Of the servers' present runs: a new one where either was started anew. */
  get incarnation(): string {
    return this.#incarnation;
  }

  /** Says nothing any more. The connections stay the caller's. */
  close(): void {
    for (const link of [this.publishing, this.delivering, this.api]) link.close();
  }

  #link(connection: NatsConnection, use: LinkUse, log: Log): Link {
    const listener = this.#listener;
    return new Link(
      connection,
      use,
      {
        down: () => {
          if (this.#present) {
            this.#present = false;
            listener.away();
          }
          listener.down(use);
        },
        up: () => {
          listener.up(use);
          this.#restored();
        },
        denied: (subject) => listener.denied(use, subject),
      },
      log,
    );
  }

  #restored(): void {
    if (this.#present || ![this.publishing, this.delivering, this.api].every(({ up }) => up)) return;
    this.#present = true;
    const before = this.#incarnation;
    this.#incarnation = this.#identity();
    this.#listener.back(this.#incarnation !== before);
  }

  /** A server's id is new at each of its starts. */
  #identity(): string {
    return `${this.publishing.serverId}/${this.delivering.serverId}`;
  }
}
