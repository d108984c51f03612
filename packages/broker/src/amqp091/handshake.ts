/**
 * From a connection's first octet to connection.open-ok, in the time and by the rules that a stranger has.
 *
 *   starting ─► authenticating ─► tuning ─► opening ─► running
 *
 * Used by: connection (one each), handlers/connection, which decide; this does. Separate because none of it is of use once
 * the connection is open. What becomes of a stranger who is not let in is decided here, too.
 */
import type { Admission } from "../core/doorkeeper.ts";
import { type Refusal, refuse } from "../refusals.ts";
import type { Client } from "./client.ts";
import type { Connection } from "./connection.ts";
import type { Gate } from "./gate.ts";
import type { Heartbeat } from "./heartbeat.ts";
import { NOTHING, type Reception } from "./reception.ts";
import type { Tuning } from "./tune.ts";

/** The parts of a connection that a handshake sets going. */
export interface HandshakeParts {
  readonly gate: Gate;
  readonly heartbeat: Heartbeat;
  readonly reception: Reception;
}

export class Handshake {
  readonly #connection: Connection;
  readonly #parts: HandshakeParts;
  #timer: NodeJS.Timeout;

  constructor(connection: Connection, parts: HandshakeParts) {
    this.#connection = connection;
    this.#parts = parts;
    this.#timer = setTimeout(() => this.#late(), connection.limits.handshake);
  }

  /** start-ok carried a login, and the doorkeeper is asked: what comes meanwhile waits. */
  authenticating(client: Client): void {
    this.#connection.client = client;
    this.#connection.state = "authenticating";
    this.#parts.gate.pause("login");
  }

  /** The doorkeeper let it in. Who has gone meanwhile leaves at once. */
  admitted(admission: Admission): void {
    const connection = this.#connection;
    if (connection.state !== "authenticating") {
      admission.leave();
      return;
    }
    connection.identity.hold(admission);
    connection.state = "tuning";
    connection.info({ product: connection.client.product }, "connection authenticated");
    const { channelMax, frameMax, heartbeat } = connection.limits;
    connection.outbox.method(0, "connection.tune", { channelMax, frameMax, heartbeat });
    this.#parts.gate.resume("login");
    connection.receive(NOTHING); // and what waited
  }

  /** The doorkeeper does not let it in. True: tell it so; else it would not understand, and is dropped after a while. */
  turnedAway(mechanism: string, why: string): boolean {
    const connection = this.#connection;
    if (connection.state !== "authenticating") return false;
    this.suspect();
    connection.warn({ mechanism, why }, "login refused");
    if (connection.client.learnsRefusal) return true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => connection.drop("its login was refused"), connection.limits.refusal);
    return false;
  }

  /** What it said as a login is wrong, or none. */
  suspect(): void {
    const { connections, origin } = this.#connection;
    connections.census.loginFailed();
    connections.suspicion.failed(origin, performance.now());
  }

  /** tune-ok is within the offer. */
  tuned(tuning: Tuning): void {
    const connection = this.#connection;
    connection.tuning = tuning;
    connection.outbox.frameMax = tuning.frameMax;
    this.#parts.reception.frameMax = tuning.frameMax;
    connection.state = "opening";
    this.#parts.heartbeat.start(tuning.heartbeat);
  }

  /** connection.open is taken, if there is room for one more. */
  open(): Refusal | undefined {
    const connection = this.#connection;
    const { census } = connection.connections;
    const entered = census.enter(connection, connection.identity.key, connection.limits);
    if (typeof entered !== "function") return entered;
    census.settled(connection);
    this.end();
    connection.opened(entered);
    connection.outbox.method(0, "connection.open-ok", {});
    connection.info({}, "connection opened");
    connection.identity.opened();
    return undefined;
  }

  /** It is over, one way or another. */
  end(): void {
    clearTimeout(this.#timer);
  }

  #late(): void {
    const connection = this.#connection;
    if (connection.state === "header") connection.drop("no protocol header came in time");
    else connection.refuse(refuse("handshake-late", { present: `${connection.limits.handshake}` }));
  }
}
