// What the actors of a torture run share: names, the history they write, where the gateways are, and when to stop.
// Separate from the run, which makes it and lets the actors loose.
import { setTimeout as sleep } from "node:timers/promises";
import { emptyHistory, type History, now, type Operation, type OperationKind } from "./history.ts";
import { type Answer, Peer, type PeerListener } from "./peer.ts";
import type { Random } from "./random.ts";

/** Name → kind. The last one comes and goes. */
export const EXCHANGES = {
  "t-direct": "direct",
  "t-fanout": "fanout",
  "t-topic": "topic",
  "t-churn": "fanout",
} as const;
export const CHURNED_EXCHANGE = "t-churn";
export const LASTING_QUEUES: readonly string[] = ["lasting-0", "lasting-1", "lasting-2"];
export const CHURNED_QUEUES: readonly string[] = ["churned-0", "churned-1", "churned-2"];
/** What the consumers with acknowledgement read. */
export const CONSUMED_QUEUES: readonly string[] = [...LASTING_QUEUES, ...CHURNED_QUEUES];
/** Read without acknowledgement only, by consumers that leave in order: nothing of it may be lost but with a gateway. */
export const QUICK_QUEUE = "quick-0";
/** What the consumers without acknowledgement read. */
export const NO_ACK_QUEUES: readonly string[] = [QUICK_QUEUE, "lasting-2", "churned-2"];
/** One for each purger, who alone consumes it: so it is known what nobody holds. */
export const PURGED_QUEUES: readonly string[] = ["purged-0", "purged-1"];
/** One that is purged although others consume it. */
export const BUSY_PURGED_QUEUE = "churned-1";
export const QUEUES: readonly string[] = [...CONSUMED_QUEUES, QUICK_QUEUE, ...PURGED_QUEUES];
/** Names for which the owners of exclusive queues contend. */
export const OWNED_NAMES: readonly string[] = ["own-0", "own-1"];

/** What is bound, and what is published: some overlap, some match nothing. */
export const BINDING_KEYS: Readonly<Record<string, readonly string[]>> = {
  "t-direct": ["a", "b", "c"],
  "t-fanout": ["", "k"],
  "t-topic": ["a.*", "*.b", "#", "a.#", "a.b", "c.d.e"],
  "t-churn": ["", "k"],
};
export const ROUTING_KEYS: Readonly<Record<string, readonly string[]>> = {
  "t-direct": ["a", "b", "c", "d"],
  "t-fanout": ["", "a"],
  "t-topic": ["a.b", "a.c", "b.b", "a.b.c", "c.d.e"],
  "t-churn": ["", "z"],
};

/** What an operation is about, and who asks where that matters. */
interface Asked {
  readonly queue?: string;
  readonly exchange?: string;
  readonly key?: string;
  readonly asker?: string;
}

/** A question that takes longer than this is a complaint: a leader's crash stalls the topology for ten seconds at most. */
export const PATIENCE = 45_000;
/** On three servers each kill is an election of up to nine seconds, and may come while a verb tries again after the last. */
export const PATIENCE_OF_THREE = 120_000;

export class World {
  readonly history: History = emptyHistory(EXCHANGES);
  /** Ends the actors' work. */
  readonly stopping: AbortController = new AbortController();
  /** Exclusive queues that stand now: publishers address them too. */
  readonly owned: Set<string> = new Set<string>();
  readonly #portOf: (gateway: number) => number | undefined;
  readonly gateways: number;
  readonly #patience: number;

  /** `patience`: what a question may take, milliseconds. */
  constructor(gateways: number, patience: number, portOf: (gateway: number) => number | undefined) {
    this.gateways = gateways;
    this.#patience = patience;
    this.#portOf = portOf;
  }

  get isStopping(): boolean {
    return this.stopping.signal.aborted;
  }

  /** A pause that the end of the work cuts short. */
  async pause(milliseconds: number): Promise<void> {
    // Cut short it takes a turn of the loop still: who waits in a loop of his own must not starve the sockets.
    await sleep(milliseconds, undefined, { signal: this.stopping.signal }).catch(() => sleep(1));
  }

  /** A connection to a gateway, a random one unless one is named; tries until one answers, undefined where all is over. */
  async connect(random: Random, listener: PeerListener, named?: number): Promise<Peer | undefined> {
    for (let tries = 0; tries < 600; tries++) {
      const gateway = tries === 0 && named !== undefined ? named : random.integer(0, this.gateways - 1);
      const port = this.#portOf(gateway);
      const peer = port === undefined ? undefined : await Peer.open(port, gateway, listener);
      if (peer !== undefined) {
        void peer.closed.then(() => this.#judge(peer));
        return peer;
      }
      if (this.isStopping && tries > 200) return undefined;
      await sleep(100);
    }
    this.complain("no gateway answers for a minute");
    return undefined;
  }

  /** Writes an operation down, waits for its answer and writes that down too. */
  async operate(
    peer: Peer,
    kind: OperationKind,
    { queue = "", exchange = "", key = "", asker }: Asked,
    ask: () => Promise<Answer>,
  ): Promise<{ readonly operation: Operation; readonly answer: Answer }> {
    const operation: Operation = {
      ...{ kind, queue, exchange, key, gateway: peer.gateway, sent: now(), outcome: "unknown" as const },
      ...(asker === undefined ? {} : { asker }),
    };
    this.history.operations.push(operation);
    const late = setTimeout(() => {
      this.complain(
        `${kind} '${queue}' '${exchange}' at gateway ${peer.gateway} is not answered for ${this.#patience} ms`,
      );
      peer.destroy();
    }, this.#patience);
    const answer = await ask();
    clearTimeout(late);
    if (answer.kind === "lost") return { operation, answer };
    operation.answered = now();
    operation.outcome = answer.kind;
    if (answer.kind === "refused") {
      operation.code = answer.code;
      operation.text = answer.text;
      // An internal error says nothing of what was done.
      if (answer.code >= 500) delete operation.answered;
      if (answer.code >= 500) operation.outcome = "unknown";
      // Whether a lock is right a law decides.
      if (answer.code !== 405 || asker === undefined)
        this.#weigh(answer.code, `${kind} '${queue}' '${exchange}' '${key}': ${answer.text}`);
    }
    return { operation, answer };
  }

  complain(text: string): void {
    this.history.complaints.push({ at: now(), text });
  }

  #judge(peer: Peer): void {
    if (peer.reason !== undefined) this.#weigh(peer.reason.code, `connection closed: ${peer.reason.text}`);
  }

  /** Which refusals a correct broker may give here: not found, in use, and that it stops. */
  #weigh(code: number, text: string): void {
    if (![404, 406, 320].includes(code)) this.complain(`${code} ${text}`);
  }
}
