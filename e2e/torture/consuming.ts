// One life of a consumer as its client sees it: what comes is written down, and so is how it ended, with the broker's last
// word or without. Used by every actor that consumes. Separate from them because they differ in what they do with what
// they are given, and in nothing here.
import { type Delivery, type Life, now } from "./history.ts";
import type { Answer, Peer, PeerListener } from "./peer.ts";
import { idOf } from "./publisher.ts";
import type { World } from "./world.ts";

/** How a consumer leaves: basic.cancel, channel.close, connection.close, or nothing at all. */
export type Way = "cancel" | "channel" | "connection" | "crash";
export const WAYS: readonly Way[] = ["cancel", "channel", "connection", "crash"];
export const WAYS_IN_ORDER: readonly Way[] = ["cancel", "channel", "connection"];

export class Consuming implements PeerListener {
  /** Tag → delivery, of what is to be settled. */
  readonly held: Map<bigint, Delivery> = new Map<bigint, Delivery>();
  readonly name: string;
  readonly queue: string;
  readonly #world: World;
  readonly #noAck: boolean;
  #peer: Peer | undefined;
  #life: Life | undefined;
  #isOpen: boolean = true;
  #asker: string | undefined;
  /** Settled for good, and nobody has made sure yet. */
  #unsure: Delivery[] = [];

  constructor(world: World, name: string, queue: string, noAck: boolean) {
    this.#world = world;
    this.name = name;
    this.queue = queue;
    this.#noAck = noAck;
  }

  /** Whether anything may still come. */
  get isOpen(): boolean {
    return this.#isOpen && this.#peer?.isOpen === true;
  }

  /** basic.consume on channel 1, which is open. */
  async begin(peer: Peer, prefetchCount: number, asker?: string): Promise<Answer> {
    const { queue, name: consumer } = this;
    this.#peer = peer;
    this.#asker = asker;
    if (!this.#noAck) await peer.ask(1, "basic.qos", { prefetchCount });
    const life: Life = { consumer, queue, noAck: this.#noAck, gateway: peer.gateway, from: now(), inOrder: false };
    this.#life = life;
    this.#world.history.lives.push(life);
    void peer.closed.then(() => this.#over(peer.reason !== undefined));
    const { answer } = await this.#world.operate(peer, "consume", this.#about, () =>
      peer.ask(1, "basic.consume", { queue, consumerTag: "t", noAck: this.#noAck }),
    );
    if (answer.kind === "refused") this.cancelled();
    return answer;
  }

  delivered(...[_channel, fields, body]: Parameters<NonNullable<PeerListener["delivered"]>>): void {
    const { deliveryTag, redelivered, exchange, routingKey } = fields;
    const id = idOf(body);
    if (id === undefined) this.#world.complain(`a body from '${this.queue}' is not what was published`);
    const at = now();
    const delivery: Delivery = {
      id: id ?? "?",
      queue: this.queue,
      exchange,
      routingKey,
      redelivered,
      gateway: this.#peer?.gateway ?? -1,
      consumer: this.name,
      consumerSent: this.#life?.from ?? at,
      at,
    };
    this.#world.history.deliveries.push(delivery);
    if (!this.#noAck) {
      this.held.set(deliveryTag, delivery);
      return;
    }
    delivery.settlement = "sent";
    delivery.settledAt = at;
    this.#unsure.push(delivery);
  }

  cancelled(): void {
    this.#isOpen = false;
    this.#over(true);
  }

  channelClosed(_channel: number, code: number, text: string): void {
    this.cancelled();
    this.#world.complain(`a consumer's channel was closed: ${code} ${text}`);
  }

  /** The client settled it; the caller says so to the broker. */
  settle(tag: bigint, how: "ack" | "requeue" | "discard"): void {
    const delivery = this.held.get(tag);
    if (delivery === undefined) return;
    this.held.delete(tag);
    delivery.settlement = how;
    delivery.settledAt = now();
    if (how !== "requeue") this.#unsure.push(delivery);
  }

  /** design §5: a declare waits until the bus has processed what this channel settled. False: the channel is no more. */
  async makeSure(): Promise<boolean> {
    const peer = this.#peer;
    if (peer === undefined) return false;
    const settled = this.#unsure.splice(0);
    if (settled.length === 0) return true;
    const { answer } = await this.#world.operate(peer, "passive", this.#about, () =>
      peer.ask(1, "queue.declare", { queue: this.queue, passive: true }),
    );
    // The channel was closed with that: the broker had the last word.
    if (answer.kind === "refused") this.cancelled();
    if (answer.kind !== "ok") return false;
    const syncedAt = now();
    for (const delivery of settled) delivery.syncedAt = syncedAt;
    return true;
  }

  /** Ends it, and its connection with it. */
  async leave(way: Way): Promise<void> {
    const peer = this.#peer;
    if (peer?.isOpen && this.#isOpen && way !== "crash") {
      this.#leaving();
      if (way === "cancel") {
        this.#heard(await asked(peer.ask(1, "basic.cancel", { consumerTag: "t" })));
        for (const deliveryTag of [...this.held.keys()]) {
          this.settle(deliveryTag, "ack");
          peer.send(1, "basic.ack", { deliveryTag });
        }
      }
      if (way !== "connection") this.#heard(await asked(peer.ask(1, "channel.close", { replyCode: 200 })));
      this.#heard(await asked(peer.ask(0, "connection.close", { replyCode: 200 })));
    }
    if (peer?.isOpen) this.#over(false);
    peer?.destroy();
  }

  get #about(): { readonly queue: string; readonly asker?: string } {
    return { queue: this.queue, ...(this.#asker === undefined ? {} : { asker: this.#asker }) };
  }

  #heard(answer: Answer | undefined): void {
    if (answer?.kind === "ok") this.#over(true);
  }

  #leaving(): void {
    if (this.#life !== undefined) this.#life.leaving ??= now();
  }

  #over(inOrder: boolean): void {
    const life = this.#life;
    if (life === undefined || life.ended !== undefined) return;
    this.#leaving();
    life.ended = now();
    life.inOrder = inOrder;
  }
}

/** The answer, or half a minute. */
async function asked(answer: Promise<Answer>): Promise<Answer | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), 30_000);
  });
  const first = await Promise.race([answer, late]);
  clearTimeout(timer);
  return first;
}
