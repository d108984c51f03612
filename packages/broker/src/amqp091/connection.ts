/**
 * A connection: octets to frames to channels, the handshake, and the one way out with a reason.
 *
 * Responsibilities: its state, its channels, what bounds it (gate, quota, limits), its end: everything is given back
 * once, whichever side ends it. Used by: connections (makes them), channel, handlers/connection (its context).
 * Separate from server.ts because it knows no socket: a transport is handed to it.
 *
 *   header ─► starting ─► tuning ─► opening ─► running ─► closed
 *      │          └──────────┴─────────┴─────────┴─ an error ─► closing ─ close-ok, or time up ─► closed
 *      └─ another protocol: answered with ours ─► closed
 */
import {
  CodecError,
  decodeMethod,
  FrameDecoder,
  FrameType,
  type MethodName,
  PROTOCOL_HEADER,
  parseProtocolHeader,
} from "@amqp/codec";
import type { PublishOutcome } from "../core/bus.ts";
import type { Log } from "../core/log.ts";
import type { Session, Verbs } from "../core/verbs.ts";
import { type Refusal, refuse } from "../refusals.ts";
import { Channel } from "./channel.ts";
import type { Connections } from "./connections.ts";
import { Gate } from "./gate.ts";
import { dispatchConnection, sendStart } from "./handlers/connection.ts";
import { Heartbeat } from "./heartbeat.ts";
import type { LaneListener } from "./lane.ts";
import type { Limits } from "./limits.ts";
import { Outbox } from "./outbox.ts";
import { Quota } from "./quota.ts";
import { type Closing, codecClosing, toClosing } from "./reply.ts";
import type { Transport, TransportListener } from "./transport.ts";
import type { Tuning } from "./tune.ts";

export type ConnectionState = "header" | "starting" | "tuning" | "opening" | "running" | "closing" | "closed";

/** What start-ok told. */
export interface Client {
  readonly user: string;
  /** The client's own name for the connection, or empty. */
  readonly name: string;
  readonly product: string;
  readonly cancelNotify: boolean;
  readonly blocked: boolean;
}

export class Connection implements TransportListener, LaneListener {
  readonly id: string;
  readonly connections: Connections;
  readonly limits: Limits;
  readonly outbox: Outbox;
  readonly quota: Quota;
  state: ConnectionState = "header";
  client: Client = { user: "", name: "", product: "", cancelNotify: false, blocked: false };
  tuning: Tuning;
  session: Session | undefined;

  readonly #verbs: Verbs;
  readonly #log: Log;
  readonly #transport: Transport;
  readonly #gate: Gate;
  readonly #heartbeat: Heartbeat;
  readonly #decoder: FrameDecoder;
  readonly #channels: Map<number, Channel> = new Map<number, Channel>();
  #timer: NodeJS.Timeout | undefined;
  #header: Buffer = Buffer.alloc(0);
  #handshakeOctets = 0;
  #waitingCommands = 0;
  #waitingOctets = 0;
  #assembling = 0;
  #lost = 0;
  #blocked: boolean = false;
  #reason = "the peer dropped the socket";
  #ended: Promise<void> | undefined;
  readonly #began: number = performance.now();

  constructor(id: string, transport: Transport, connections: Connections) {
    this.id = id;
    this.connections = connections;
    this.limits = connections.limits;
    this.#verbs = connections.verbs;
    this.#log = connections.log;
    this.#transport = transport;
    this.tuning = this.limits;
    this.outbox = new Outbox(transport, this.limits);
    this.quota = new Quota(this.limits);
    this.#gate = new Gate(transport);
    this.#heartbeat = new Heartbeat(this.outbox, this.#gate, () => this.#silent());
    this.#decoder = new FrameDecoder({ maxFrameSize: this.limits.handshakeFrameMax });
    this.#timer = setTimeout(() => this.#late(), this.limits.handshake);
    this.#log.debug(this.#fields(), "connection accepted");
  }

  get user(): string {
    return this.client.user;
  }

  get notifiesCancel(): boolean {
    return this.client.cancelNotify;
  }

  // ── what the transport tells ──────────────────────────────────────────────────────────────────────────────────────

  receive(chunk: Buffer): void {
    if (this.state === "closed") return;
    this.#heartbeat.received();
    try {
      if (this.state === "header") this.#receiveHeader(chunk);
      else this.#receiveFrames(chunk);
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

  // ── frames ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #receiveHeader(chunk: Buffer): void {
    const octets = this.#header.length === 0 ? chunk : Buffer.concat([this.#header, chunk]);
    const parsed = parseProtocolHeader(octets);
    if (parsed === "need-more") {
      this.#header = octets;
      return;
    }
    if (parsed === "foreign") {
      this.#reason = "the peer speaks another protocol";
      this.outbox.raw(Buffer.from(PROTOCOL_HEADER));
      this.#closeTransport("end");
      return;
    }
    this.state = "starting";
    sendStart(this);
    if (octets.length > PROTOCOL_HEADER.length) this.#receiveFrames(octets.subarray(PROTOCOL_HEADER.length));
  }

  #receiveFrames(chunk: Buffer): void {
    if (this.state === "starting" || this.state === "tuning" || this.state === "opening") {
      this.#handshakeOctets += chunk.length;
    }
    this.#decoder.push(chunk, (type, channel, payload) => this.#receiveFrame(type, channel, payload));
    if (this.state !== "running" && this.#handshakeOctets > this.limits.handshakeOctets) {
      this.refuse(refuse("handshake-too-long", { present: `${this.limits.handshakeOctets}` }));
    }
  }

  #receiveFrame(type: FrameType, channel: number, payload: Buffer): void {
    if (this.state === "closing") {
      if (type === FrameType.METHOD && channel === 0) dispatchConnection(this, decodeMethod(payload));
      return;
    }
    if (this.state === "closed") return;
    if (type === FrameType.HEARTBEAT) {
      if (channel !== 0) this.#unexpectedFrame(type, channel);
      else if (payload.length > 0) this.refuse(refuse("malformed-heartbeat"));
      return;
    }
    if (channel === 0) {
      if (type === FrameType.METHOD) dispatchConnection(this, decodeMethod(payload));
      else this.#unexpectedFrame(type, channel);
      return;
    }
    if (this.state !== "running") {
      this.#unexpectedFrame(type, channel);
      return;
    }
    const open = this.#channels.get(channel);
    if (open !== undefined) open.receive(type, payload);
    else this.#openChannel(type, channel, payload);
  }

  #openChannel(type: FrameType, number: number, payload: Buffer): void {
    if (type !== FrameType.METHOD) {
      this.#unexpectedFrame(type, number);
      return;
    }
    const method = decodeMethod(payload);
    const { session } = this;
    if (method.name !== "channel.open" || session === undefined) {
      this.refuse(refuse("channel-not-open"), method.name);
      return;
    }
    if (number > this.tuning.channelMax) {
      this.refuse(refuse("channel-number", { wanted: `${number}`, present: `${this.tuning.channelMax}` }), method.name);
      return;
    }
    this.#channels.set(number, new Channel(number, this, this.#verbs, session));
    this.outbox.method(number, "channel.open-ok", {});
  }

  #unexpectedFrame(type: FrameType, channel: number): void {
    this.refuse(refuse("unexpected-frame", { wanted: `${type}`, present: `${channel}` }));
  }

  // ── what the handshake tells ──────────────────────────────────────────────────────────────────────────────────────

  /** start-ok carried a login. */
  authenticated(client: Client): void {
    this.client = client;
    this.state = "tuning";
    this.#log.info({ ...this.#fields(), product: client.product }, "connection authenticated");
  }

  /** tune-ok is within the offer. */
  tuned(tuning: Tuning): void {
    this.tuning = tuning;
    this.outbox.frameMax = tuning.frameMax;
    this.#decoder.maxFrameSize = tuning.frameMax;
    this.state = "opening";
    this.#heartbeat.start(tuning.heartbeat);
  }

  /** connection.open is taken. */
  opened(): void {
    clearTimeout(this.#timer);
    this.session = this.#verbs.openSession();
    this.state = "running";
    this.outbox.method(0, "connection.open-ok", {});
    this.#log.info(this.#fields(), "connection opened");
    if (this.connections.blockedReason !== undefined) this.blocked(this.connections.blockedReason);
  }

  // ── what channels tell ────────────────────────────────────────────────────────────────────────────────────────────

  /** LaneListener: commands wait, or wait no more. */
  waiting(commands: number, octets: number): void {
    this.#waitingCommands += commands;
    this.#waitingOctets += octets;
    const { laneCommands, laneOctets } = this.limits;
    if (this.#waitingCommands > laneCommands || this.#waitingOctets > laneOctets) this.#gate.pause("lane");
    else if (this.#waitingCommands <= laneCommands / 2 && this.#waitingOctets <= laneOctets / 2) {
      this.#gate.resume("lane");
    }
  }

  /** So many octets of a body are announced, or (negative) have come or been given up. */
  assembling(octets: number, method?: MethodName): void {
    this.#assembling += octets;
    if (octets > 0 && this.#assembling > this.limits.assembling) {
      this.refuse(refuse("too-much-assembling", { present: `${this.limits.assembling}` }), method);
    }
  }

  /** A publish went to the bus: where its window is full, this socket is not read until there is room. */
  published(): void {
    if (!this.#verbs.room) this.#gate.pause("room");
  }

  /** A publish that nobody confirms was not stored. */
  lost(outcome: PublishOutcome): void {
    if (this.#lost++ === 0) this.#log.warn({ ...this.#fields(), outcome }, "a publish without confirm was not stored");
  }

  refusedChannel(channel: Channel, { name, code, text }: Refusal): void {
    this.#log.info({ ...this.#fields(), channel: channel.number, refusal: name, code }, `channel closed: ${text}`);
  }

  /** The channel's number may be opened again. */
  forget(channel: Channel): void {
    if (this.#channels.get(channel.number) === channel) this.#channels.delete(channel.number);
  }

  /** What was thrown is malformed input where the codec says so, a lost bus where that says so, else a bug: 541. */
  broke(error: unknown, method: MethodName | undefined): void {
    if (error instanceof CodecError) {
      this.fail(codecClosing(error));
      return;
    }
    const name = isLostBus(error) ? "bus-silent" : "bug";
    if (this.#ended === undefined)
      this.#log.error({ ...this.#fields(), method, err: error }, `connection broke: ${name}`);
    this.refuse(refuse(name), method);
  }

  // ── what connections tell ─────────────────────────────────────────────────────────────────────────────────────────

  blocked(reason: string): void {
    if (this.state !== "running" || this.#blocked || !this.client.blocked) return;
    this.#blocked = true;
    this.outbox.method(0, "connection.blocked", { reason });
  }

  unblocked(): void {
    if (this.#blocked && this.state === "running") this.outbox.method(0, "connection.unblocked", {});
    this.#blocked = false;
  }

  room(): void {
    this.#gate.resume("room");
  }

  // ── the end ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Refuses a method, and with it the connection. */
  refuse(refusal: Refusal, method?: MethodName): void {
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
    this.#timer = setTimeout(() => this.#closeTransport("destroy"), this.limits.closing);
    await this.end();
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
    clearTimeout(this.#timer);
    this.#heartbeat.stop();
    // Cancel all before anything is requeued: it goes back in its order, and to others.
    const ended = [...this.#channels.values()].map((channel) => channel.end());
    this.#channels.clear();
    this.#verbs.requeue(ended.flatMap(({ held }) => held));
    const { session } = this;
    try {
      await Promise.all(ended.map(({ cancelled }) => cancelled));
      if (session !== undefined) await this.#verbs.closeSession(session);
    } catch (error) {
      this.#log.warn(
        { ...this.#fields(), err: error },
        "the exclusive queues of a connection are left to the next boot",
      );
    }
  }

  #closeTransport(how: "end" | "destroy"): void {
    if (this.state === "closed") return;
    this.state = "closed";
    clearTimeout(this.#timer);
    this.#heartbeat.stop();
    void this.end();
    this.outbox.close();
    this.#transport[how]();
    const seconds = Math.round((performance.now() - this.#began) / 1000);
    this.#log.info({ ...this.#fields(), reason: this.#reason, seconds }, "connection closed");
  }

  #late(): void {
    if (this.state === "header") this.drop("no protocol header came in time");
    else this.refuse(refuse("handshake-late", { present: `${this.limits.handshake}` }));
  }

  #silent(): void {
    this.refuse(refuse("silent", { present: `${this.tuning.heartbeat}` }));
  }

  /** A peer that does not read is not read either; its commands go on when it has. */
  #watchUnsent(): void {
    if (this.outbox.congested) {
      this.#gate.pause("unsent");
    } else if (this.#gate.has("unsent")) {
      this.#gate.resume("unsent");
      for (const channel of this.#channels.values()) channel.go();
    }
  }

  #fields(): object {
    const { remote } = this.#transport;
    return { connection: this.id, peer: remote, name: this.client.name || undefined, user: this.user || undefined };
  }
}

/** The shape of what the bus throws (core/bus.ts). */
function isLostBus(error: unknown): boolean {
  const shape = error as { readonly code?: unknown; readonly timeout?: unknown } | null;
  return typeof shape === "object" && typeof shape?.code === "number" && typeof shape.timeout === "boolean";
}
