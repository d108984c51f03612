/**
 * One NATS connection's health: up or down, and which server run it speaks to.
 *
 * Responsibilities: turns the client's status events into `down` and `up`, once each.
 * Used by: links.ts, one for each connection; the other parts of this folder, which ask it.
 * Separate because the client drops what it buffered at every attempt to reconnect: nothing may be handed to it
 * between `down` and `up`, so everybody must ask the same place.
 */
import { type NatsConnection, PermissionViolationError } from "@nats-io/nats-core";
import type { Log } from "../core/log.ts";
import { type Wire, wireOf } from "./wire.ts";

export interface LinkListener {
  down(): void;
  up(): void;
  /** The server does not permit this login what was sent to that subject; in the order in which it was sent. */
  denied(subject: string): void;
}

export class Link {
  readonly connection: NatsConnection;
  /** The same connection, for what goes message by message. */
  readonly wire: Wire;
  readonly #name: string;
  readonly #listener: LinkListener;
  readonly #log: Log;
  #up: boolean = true;
  #closing: boolean = false;
  #serverId: string;
  #maxPayload: number;

  constructor(connection: NatsConnection, name: string, listener: LinkListener, log: Log) {
    this.connection = connection;
    this.wire = wireOf(connection);
    this.#name = name;
    this.#listener = listener;
    this.#log = log;
    this.#serverId = connection.info?.server_id ?? "";
    this.#maxPayload = connection.info?.max_payload ?? 0;
    void this.#watch();
  }

  /** Something handed to the client now reaches the wire. */
  get up(): boolean {
    return this.#up && !this.connection.isClosed();
  }

  /** The id of the server's present run; every start of a server makes a new one. */
  get serverId(): string {
    return this.#serverId;
  }

  /** Whether the server is one of several that lead in turn. */
  get isClustered(): boolean {
    return this.connection.info?.cluster !== undefined;
  }

  /** Octets of headers and payload together that the server takes. */
  get maxPayload(): number {
    return this.#maxPayload;
  }

  /** Says nothing any more. The connection stays the caller's. */
  close(): void {
    this.#closing = true;
  }

  async #watch(): Promise<void> {
    for await (const status of this.connection.status()) {
      if (this.#closing) return;
      if (status.type === "disconnect" || status.type === "close") this.#down(status.type);
      else if (status.type === "reconnect") this.#restored();
      else if (status.type === "error") this.#failed(status.error);
    }
    if (!this.#closing) this.#down("close");
  }

  #failed(error: Error): void {
    this.#log.warn({}, `bus (${this.#name}): ${error.message}`);
    if (error instanceof PermissionViolationError && error.operation === "publish")
      this.#listener.denied(error.subject);
  }

  #down(why: string): void {
    if (!this.#up) return;
    this.#up = false;
    this.#log.warn({}, `bus (${this.#name}): connection lost (${why})`);
    this.#listener.down();
  }

  #restored(): void {
    if (this.#up) return;
    this.#up = true;
    const info = this.connection.info;
    if (info !== undefined) {
      this.#serverId = info.server_id;
      this.#maxPayload = info.max_payload;
    }
    this.#log.info({}, `bus (${this.#name}): connected again`);
    this.#listener.up();
  }
}
