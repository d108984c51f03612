/**
 * A connection: octets to frames to channels, the handshake, and the one way out with a reason.
 *
 * Responsibilities: its state, its channels, what bounds it (gate, quota, limits), its end: everything is given back
 * once, whichever side ends it. Used by: connections (makes them), channel, handlers/connection (its context).
 * Separate from server.ts because it knows no socket: a transport is handed to it.
 *
 *   header ─► starting ─► authenticating ─► tuning ─► opening ─► running ─► closed
 *      │          └──────────────┴─────────────┴─────────┴─────────┴─ an error ─► closing ─ close-ok, or time up ─► closed
 *      └─ another protocol: answered with ours ─► closed
 */
import { CodecError, type MethodName } from "@amqp/codec";
import type { PublishOutcome } from "../core/bus.ts";
import type { Log } from "../core/log.ts";
import type { Session } from "../core/verbs.ts";
import { type Refusal, refuse } from "../refusals.ts";
import { type Counted, originOf } from "./census.ts";
import type { Channel } from "./channel.ts";
import { Channels } from "./channels.ts";
import { type Client, NO_CLIENT } from "./client.ts";
import type { Connections } from "./connections.ts";
import { Gate } from "./gate.ts";
import { Handshake } from "./handshake.ts";
import { Heartbeat } from "./heartbeat.ts";
import { Identity } from "./identity.ts";
import type { Limits } from "./limits.ts";
import { Outbox, type OutboxOwner } from "./outbox.ts";
import { Pressure } from "./pressure.ts";
import { Quota } from "./quota.ts";
import { Reception } from "./reception.ts";
import { type Closing, codecClosing, toClosing, toRefusal } from "./reply.ts";
import type { Transport, TransportListener } from "./transport.ts";
import type { Tuning } from "./tune.ts";

export type ConnectionState =
  | "header"
  | "starting"
  | "authenticating"
  | "tuning"
  | "opening"
  | "running"
  | "closing"
  | "closed";

export class Connection implements TransportListener, Counted, OutboxOwner {
  readonly id: string;
  readonly origin: string;
  readonly connections: Connections;
  readonly limits: Limits;
  readonly outbox: Outbox;
  readonly identity: Identity;
  readonly quota: Quota;
  readonly pressure: Pressure;
  readonly handshake: Handshake;
  state: ConnectionState = "header";
  client: Client = NO_CLIENT;
  tuning: Tuning;
  session: Session | undefined;

  readonly #log: Log;
  readonly #transport: Transport;
  readonly #gate: Gate;
  readonly #heartbeat: Heartbeat;
  readonly #reception: Reception;
  readonly #channels: Channels;
  #timer: NodeJS.Timeout | undefined;
  #lost = 0;
  #leave: (() => void) | undefined;
  #reason = "the peer dropped the socket";
  #ended: Promise<void> | undefined;
  readonly #began: number = performance.now();

  constructor(id: string, transport: Transport, connections: Connections) {
    this.id = id;
    this.origin = originOf(transport.remote);
    this.connections = connections;
    this.limits = connections.limits;
    this.#log = connections.log;
    this.#transport = transport;
    this.tuning = this.limits;
    this.outbox = new Outbox(transport, this.limits, this);
    this.identity = new Identity(this);
    this.quota = new Quota(this.limits, () => this.identity.verbs);
    this.#gate = new Gate(transport);
    this.pressure = new Pressure(this.#gate, this.limits);
    this.#channels = new Channels(this);
    this.#heartbeat = new Heartbeat(this.outbox, this.#gate, () => this.#silent());
    this.#reception = new Reception(this, this.#channels);
    this.handshake = new Handshake(this, {
      gate: this.#gate,
      heartbeat: this.#heartbeat,
      reception: this.#reception,
    });
    this.#log.debug(this.#fields(), "connection accepted");
  }

  get remote(): string {
    return this.#transport.remote;
  }

  receive(chunk: Buffer): void {
    if (this.state === "closed") return;
    this.#heartbeat.received();
    try {
      this.#reception.receive(chunk);
    } catch (error) {
      this.broke(error, undefined);
    }
    this.#watchUnsent();
  }

  drained(): void {
    this.outbox.drained();
    this.#watchUnsent();
  }

  closed(error?: Error): void {
    if (error !== undefined) this.#reason = `the socket failed: ${error.message}`;
    void this.end();
    if (this.state !== "closed") this.#closeTransport("destroy");
  }

  /** OutboxOwner. */
  get mayDeliver(): boolean {
    return this.session === undefined || this.identity.verbs.holdsLease;
  }

  /** OutboxOwner: its tags are used up, so the client starts anew; what it held is requeued as of any lost connection. */
  voided(): void {
    this.refuse(refuse("stood-still"));
  }

  info(fields: object, text: string): void {
    this.#log.info({ ...this.#fields(), ...fields }, text);
  }

  warn(fields: object, text: string): void {
    this.#log.warn({ ...this.#fields(), ...fields }, text);
  }

  /** It runs; `leave` is called when it ends. */
  opened(leave: () => void): void {
    this.#leave = leave;
    this.session = this.identity.verbs.openSession();
    this.state = "running";
  }

  /** A publish went to the bus: where its window is full, this socket is not read until there is room. */
  published(): void {
    if (!this.identity.verbs.room) this.#gate.pause("room");
  }

  /** A publish that nobody confirms was not stored. */
  lost(outcome: PublishOutcome): void {
    if (this.#lost++ === 0) this.warn({ outcome }, "a publish without confirm was not stored");
  }

  refusedChannel(channel: Channel, { name, code, text }: Refusal): void {
    this.connections.census.refused(name);
    this.#log.info({ ...this.#fields(), channel: channel.number, refusal: name, code }, `channel closed: ${text}`);
  }

  /** The channel's number may be opened again. */
  forget(channel: Channel): void {
    this.#channels.forget(channel);
  }

  /** What was thrown is malformed input where the codec says so, a lost bus where that says so, else a bug: 541. */
  broke(error: unknown, method: MethodName | undefined): void {
    if (error instanceof CodecError) {
      this.fail(codecClosing(error));
      return;
    }
    const refusal = toRefusal(error);
    if (this.#ended === undefined) {
      this.#log.error({ ...this.#fields(), method, err: error }, `connection broke: ${refusal.name}`);
    }
    this.refuse(refusal, method);
  }

  room(): void {
    this.#gate.resume("room");
  }

  /** Refuses a method, and with it the connection. */
  refuse(refusal: Refusal, method?: MethodName): void {
    if (this.state === "closing" || this.state === "closed") return;
    this.connections.census.refused(refusal.name);
    // As bad as a wrong one.
    if (refusal.name === "login-malformed") this.handshake.suspect();
    this.fail(toClosing(refusal, method));
  }

  /** connection.close with a reason; then the peer has a moment to answer. Everything is given back at once. */
  fail(closing: Closing): void {
    if (this.state === "closing" || this.state === "closed") return;
    this.#reason = closing.replyText;
    this.state = "closing";
    void this.end();
    this.outbox.method(0, "connection.close", closing);
    this.outbox.flush();
    this.#timer = setTimeout(() => this.#closeTransport("destroy"), this.limits.closing);
  }

  /** The socket ends without another word. */
  drop(reason: string): void {
    this.#reason = reason;
    void this.end();
    this.#closeTransport("end");
  }

  /** The client's connection.close: answered when everything is given back. */
  async closeByClient(reason: string): Promise<void> {
    this.#reason = reason;
    this.state = "closing";
    const given = this.end();
    this.#timer = setTimeout(() => this.#closeTransport("destroy"), this.limits.closing);
    await given;
    this.outbox.method(0, "connection.close-ok", {});
    this.#closeTransport("end");
  }

  /** The peer answered our connection.close. */
  closeAnswered(): void {
    this.#closeTransport("end");
  }

  /** Gives everything back, once; resolves when the session is closed. */
  end(): Promise<void> {
    if (this.#ended === undefined) {
      this.#ended = this.#giveBack();
      this.connections.ended(this, this.#ended);
    }
    return this.#ended;
  }

  async #giveBack(): Promise<void> {
    this.handshake.end();
    this.connections.census.settled(this);
    this.#leave?.();
    this.#heartbeat.stop();
    // Cancel all before anything is requeued: it goes back in its order, and to others.
    const { cancelled, held } = this.#channels.end();
    const { session } = this;
    if (session !== undefined) this.identity.verbs.requeue(held);
    try {
      await cancelled;
      if (session !== undefined) await this.identity.verbs.closeSession(session);
    } catch (error) {
      this.warn({ err: error }, "the exclusive queues of a connection are left to the next boot");
    }
    this.identity.leave();
  }

  #closeTransport(how: "end" | "destroy"): void {
    if (this.state === "closed") return;
    // A probe of the port, which says nothing; RabbitMQ does not make a line of it either.
    const level = this.state === "header" && !this.#reception.began ? "debug" : "info";
    this.state = "closed";
    this.connections.census.gone(this);
    clearTimeout(this.#timer);
    this.#heartbeat.stop();
    void this.end();
    this.outbox.close();
    this.#transport[how]();
    const seconds = Math.round((performance.now() - this.#began) / 1000);
    this.#log[level]({ ...this.#fields(), reason: this.#reason, seconds }, "connection closed");
  }

  #silent(): void {
    this.refuse(refuse("silent", { present: `${this.tuning.heartbeat}` }));
    this.#closeTransport("end"); // nobody is there to answer
  }

  /** A peer that does not read is not read either; its commands go on when it has. */
  #watchUnsent(): void {
    if (this.outbox.congested) {
      this.#gate.pause("unsent");
    } else if (this.#gate.has("unsent")) {
      this.#gate.resume("unsent");
      this.#channels.go();
    }
  }

  #fields(): object {
    const { remote } = this.#transport;
    return {
      connection: this.id,
      peer: remote,
      name: this.client.name || undefined,
      user: this.identity.user || undefined,
    };
  }
}
