/**
 * Changes of the topology, wherever they are asked for: done here by the leader, forwarded to it by everyone else.
 *
 * Responsibilities: finding the leader, asking again where another one took over, and waiting for the own mirror before
 * the asking client is answered (design §4: the asking replica's fence). Used by: replica (one each), broker,
 * consumption. Separate because every verb that changes something goes this one way. Verbs are such that asking again
 * after an unknown outcome does no harm.
 */
import type { Topology } from "@amqp/topology";
import type { BusErrorShape } from "./bus.ts";
import type { Changes } from "./changes.ts";
import type { Fleet } from "./fleet.ts";
import { type Leadership, NotLeading } from "./leadership.ts";
import { PATIENCE } from "./patience.ts";
import { PeerAbsent, PeerRefused, PeerSilent, type Peers } from "./peers.ts";

/** Longest wait for one answer of a leader that lives. */
const ANSWER = 10_000;
const PAUSE = 50;

/** No replica leads and none took over in time, or the leader's bus is silent: of the shape of a bus error. */
class NoLeader extends Error implements BusErrorShape {
  override readonly name: string = "NoLeader";
  readonly code: number = 0;
  readonly timeout: boolean = true;
}

/** Errors of the leader that are its bus's, by name: not bugs. */
const SILENT: ReadonlySet<string> = new Set(["BusError", "BucketSilent", "BusAway", "ApiError", "NoLeader"]);
/** Those after which it is worth asking again: nobody answered. */
const UNANSWERED: ReadonlySet<string> = new Set(["BusError", "BucketSilent", "BusAway"]);

type Verb = keyof Changes;
type Question<V extends Verb> = Parameters<Changes[V]>[0];
type Answer<V extends Verb> = Awaited<ReturnType<Changes[V]>>;

/** A leader's answer: what was said, and the revision from which on it is true. */
interface Answered<V extends Verb> {
  readonly value: Answer<V>;
  readonly revision: number;
}

export class Lead {
  readonly #topology: Topology;
  readonly #leadership: Leadership;
  readonly #fleet: Fleet;
  readonly #peers: Peers;
  readonly #changes: Changes;

  constructor(topology: Topology, leadership: Leadership, fleet: Fleet, peers: Peers, changes: Changes) {
    this.#topology = topology;
    this.#leadership = leadership;
    this.#fleet = fleet;
    this.#peers = peers;
    this.#changes = changes;
  }

  /** Has it done by whoever leads; resolves when the own mirror shows it. */
  async run<V extends Verb>(verb: V, question: Question<V>): Promise<Answer<V>> {
    // For a leader, and for its bus.
    let end = Date.now() + PATIENCE;
    const last = end + PATIENCE;
    for (;;) {
      const answered = await this.#try(verb, question, Date.now() < end);
      if (typeof answered === "object") {
        await this.#topology.applied(answered.revision);
        // JSON knows no undefined.
        return answered.value ?? (undefined as Answer<V>);
      }
      // One that was deposed at work is waited for anew: the bus lost a second server before all was well again.
      if (answered === "deposed") end = Math.min(Date.now() + PATIENCE, last);
      if (Date.now() > end) throw new NoLeader(this.#absence());
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      await this.#leadership.seek();
    }
  }

  /** A question that came from another replica. Throws {@link NotLeading} where this one does not lead. */
  async answer(verb: string, question: unknown): Promise<Answered<Verb>> {
    if (!this.#leadership.leading) throw new NotLeading("another replica leads");
    const work = this.#changes[verb as Verb] as (question: unknown) => Promise<Answer<Verb>>;
    const value = await work.call(this.#changes, question);
    return { value, revision: this.#topology.revision };
  }

  /** Why nobody answers for the topology, for whoever has to find out. */
  #absence(): string {
    const leader = this.#topology.leader();
    if (leader === undefined) return "no replica leads the topology";
    if (leader === this.#fleet.replica) return "this replica could not take over the topology in time";
    return `replica ${leader} holds the topology leader's lease, and does not answer`;
  }

  /** A leader that was stopped or cut off never answers: no longer waited for than it leads. */
  async #whileLeading<T>(leader: string, answer: Promise<T>): Promise<T | "deposed"> {
    let timer: NodeJS.Timeout | undefined;
    const deposed = new Promise<"deposed">((resolve) => {
      timer = setInterval(() => {
        if (this.#topology.leader() !== leader) resolve("deposed");
      }, PAUSE);
    });
    try {
      return await Promise.race([answer, deposed]);
    } finally {
      clearInterval(timer);
    }
  }

  /** Where it is not answered: find out who leads, and ask again. */
  async #try<V extends Verb>(
    verb: V,
    question: Question<V>,
    isPatient: boolean,
  ): Promise<Answered<V> | "deposed" | "nobody"> {
    const led = this.#leadership.leading;
    try {
      if (led) return (await this.answer(verb, question)) as Answered<V>;
      const leader = this.#topology.leader();
      if (leader === undefined || leader === this.#fleet.replica) return "nobody";
      const asked = this.#peers.ask(leader, `lead.${verb}`, question, ANSWER) as Promise<Answered<V>>;
      return await this.#whileLeading(leader, asked);
    } catch (error) {
      if (error instanceof NotLeading || (error instanceof PeerRefused && error.code === "NotLeading"))
        return "deposed";
      if (error instanceof PeerAbsent || error instanceof PeerSilent) return "nobody";
      // The servers of the bus may be about to elect a leader of their own.
      if (isPatient && isUnanswered(error)) return led && !this.#leadership.leading ? "deposed" : "nobody";
      if (error instanceof PeerRefused && SILENT.has(error.code)) throw new NoLeader(error.message, { cause: error });
      throw error;
    }
  }
}

function isUnanswered(error: unknown): boolean {
  if (error instanceof PeerRefused) return UNANSWERED.has(error.code);
  return error instanceof Error && UNANSWERED.has(error.name) && (error as { timeout?: unknown }).timeout === true;
}
