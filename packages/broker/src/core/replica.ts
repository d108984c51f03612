/**
 * A replica: every part of the core, put together over one bus and one topology, from boot to stop.
 *
 * Responsibilities: composing the parts, the order of boot and stop, and what a lapse of the presence lease does to them.
 * Used by: broker, which speaks for it to front ends. Separate because it is the only place that knows every part; each
 * part's steps are in its own file.
 */
import { type Bucket, Topology } from "@amqp/topology";
import { Answers } from "./answers.ts";
import { type Bus, BusAway } from "./bus.ts";
import { Consumption } from "./consumption.ts";
import type { Core } from "./context.ts";
import { Cursors } from "./cursors.ts";
import { Fleet } from "./fleet.ts";
import type { Health } from "./health.ts";
import { Lanes } from "./lanes.ts";
import { Lead } from "./lead.ts";
import { Leader } from "./leader.ts";
import { Leadership } from "./leadership.ts";
import type { Log } from "./log.ts";
import type { Properties } from "./message.ts";
import { isClosing } from "./open-intervals.ts";
import type { Peers } from "./peers.ts";
import { Presence, type PresenceListener } from "./presence.ts";

export interface ReplicaOptions {
  /** The first words of every subject: `amqp`, or a namespace's own. All else that spells a subject asks the topology. */
  readonly root: string;
  readonly bus: Bus;
  readonly bucket: Bucket;
  readonly peers: Peers;
  /** It never leads: another replica does, with rights that this one may not have. */
  readonly follows?: boolean;
  readonly health: Health;
  readonly log: Log;
  /** Told once: the topology cannot be followed any more. Connections are closed by then; serve no others. */
  lost(error: Error): void;
  /** The milliseconds after which a message expires, if its properties say so: the front end's knowledge. */
  expirationOf(properties: Properties): number | undefined;
}

export class Replica {
  readonly core: Core;
  readonly health: Health;
  readonly lead: Lead;
  readonly leader: Leader;
  readonly consumption: Consumption;
  readonly #peers: Peers;
  readonly #presence: Presence;
  readonly #leadership: Leadership;
  readonly #answers: Answers;
  /** No other replica lived when this one booted, and none has served since. */
  #starting: boolean;
  /** The id under which the cursors deliver and settle; behind the presence's own until what a lapse voided is dropped. */
  #acting: string = "";

  /** Mirror, leases, reconciliation: resolves when a client may be served; rejects rather than serve half a broker. */
  static async open(options: ReplicaOptions): Promise<Replica> {
    const { bus, bucket, health, log } = options;
    let replica: Replica | undefined;
    const topology = await Topology.open(bucket, {
      root: options.root,
      permit: () => {
        // What is handed to the client while it dials leaves when it is through.
        if (!bus.present) throw new BusAway("the bus is away");
        replica?.core.leadership.assert();
      },
      lost: (error) => {
        log.error({ err: error }, "the watch of the topology bucket is lost; closing the connections");
        health.closing("the topology of this broker is out of date; connect again");
        options.lost(error);
      },
    });
    const presence = new Presence(bucket, topology, log);
    try {
      // One that follows came after the leader, and need not know who else is there.
      const starting = options.follows !== true && (await presence.others()).length === 0;
      // After a crash of the whole fleet nobody knows what was delivered at the end.
      const suspectBelow = starting && !topology.fleet().clean ? await bus.lastSequence() : 0;
      replica = new Replica(options, topology, presence, { starting, suspectBelow });
      await presence.take(replica.#presenceListener());
      // Whoever changes something waits for this replica from now on; what was changed before is in the mirror after this.
      await topology.fence();
      replica.#acting = presence.id;
      if (starting) await replica.#markFleet(false);
      await replica.#leadership.seek();
      await replica.lead.run("ready", null);
      replica.#leadership.tell();
      replica.#starting = false;
      return replica;
    } catch (error) {
      await (replica === undefined ? topology.close() : replica.#end(async () => undefined));
      // Another attempt may come, with the same.
      health.present();
      throw error;
    }
  }

  private constructor(
    options: ReplicaOptions,
    topology: Topology,
    presence: Presence,
    boot: { readonly starting: boolean; readonly suspectBelow: number },
  ) {
    const { bus, bucket, health, log, peers } = options;
    this.#starting = boot.starting;
    const cursors: Cursors = new Cursors(bus, topology, {
      expirationOf: options.expirationOf,
      suspectBelow: boot.suspectBelow,
      holdsLease: () => this.acts,
      isAlone: () => this.core.fleet.others.length === 0,
      heldElsewhere: (queue) => this.core.fleet.heldElsewhere(queue),
      sweep: async (queue) => (await this.lead.run("sweep", { queue })).written,
      doubt: async (queue, upTo) => void (await this.lead.run("doubt", { queue, upTo })),
      note: (text) => log.warn({}, text),
    });
    const fleet = new Fleet(topology, cursors, peers, () => presence.id, log);
    const leadership = new Leadership(bucket, topology, presence, log, !options.follows, () =>
      this.leader.takeOver(this.#starting, () => this.consumption.consuming()),
    );
    this.core = { bus, topology, fleet, lanes: new Lanes(), cursors, leadership, log };
    this.health = health;
    this.#peers = peers;
    this.#presence = presence;
    this.#leadership = leadership;
    this.leader = new Leader(this.core);
    this.lead = new Lead(topology, leadership, fleet, peers, this.leader.changes);
    this.consumption = new Consumption(this.core, this.lead);
    this.#answers = new Answers(topology, cursors, this.consumption, this.lead);
    topology.listen({
      queueChanged: (name, queue) => cursors.queueChanged(name, queue),
      bindingChanged: (queue, binding) => {
        cursors.bindingChanged(queue);
        if (binding !== undefined && isClosing(binding)) this.leader.seesClosing(queue);
      },
      replicaChanged: (id, alive) => {
        if (!alive) {
          fleet.replicaGone(id);
          void this.leader.replicaGone(id);
        }
      },
      leaderChanged: (id) => {
        if (id === undefined) void leadership.seek();
      },
    });
    health.attach({
      away: () => cursors.away(),
      back: (restarted) => {
        if (restarted) fleet.busRestarted();
        cursors.back(restarted);
      },
      moved: (queue) => cursors.present(queue)?.moved(),
      // Nothing of it is out before it acts for the first time.
      acts: () => this.#acting === "" || this.acts,
    });
  }

  /**
   * A graceful stop, after the front ends closed their connections: hands back what was pulled, leaves the bucket clean.
   */
  async close(): Promise<void> {
    const { fleet, topology } = this.core;
    await this.#end(async () => {
      // Of several that stop at once the last one to give its lease up sees that it was the last.
      await topology.fence();
      if (fleet.others.length === 0) await this.#markFleet(true);
    });
  }

  /** `last` is done when this replica has gone. */
  async #end(last: () => Promise<void>): Promise<void> {
    const { cursors, topology, log } = this.core;
    // What fails for want of a bus does not keep the rest from being done: leases then expire by themselves.
    for (const step of [
      () => this.leader.close(),
      () => cursors.close(),
      () => this.#leadership.close(),
      () => this.#presence.release(),
      last,
      async () => this.#peers.close(),
      () => topology.close(),
      async () => this.health.detach(),
    ])
      await step().catch((error: unknown) => log.warn({ err: error }, "a step of stopping the broker failed"));
  }

  /** Whether the fleet stopped well, for whoever boots next. A conflict is another replica's word, read before ours. */
  async #markFleet(clean: boolean): Promise<void> {
    const { topology, fleet } = this.core;
    while ((await topology.writeFleet(clean)) === "conflict") if (clean && fleet.others.length > 0) return;
  }

  /** Whether something is here that a stop of the whole fleet would take: a queue or an exchange that is not durable. */
  get holdsTransient(): boolean {
    const { topology } = this.core;
    for (const { durable } of topology.queues()) if (!durable) return true;
    for (const { durable } of topology.exchanges()) if (!durable) return true;
    return false;
  }

  /** Its present id: it changes when its lease lapsed. */
  get id(): string {
    return this.#presence.id;
  }

  /** By this process's own clock, in this turn: may it deliver and settle? */
  get acts(): boolean {
    return this.#presence.held() && this.#presence.id === this.#acting;
  }

  #presenceListener(): PresenceListener {
    return {
      naming: (id) => {
        // Before another lease is held: what comes for the one before comes for nobody.
        this.core.cursors.lapsed();
        this.#peers.serve(id, (question, details) => this.#answers.answer(question, details));
      },
      lapsed: () => {
        this.health.absent();
        this.core.fleet.returned();
        void this.#leadership.resign();
      },
      renamed: (former) => this.#renamed(former),
      regained: () => this.health.present(),
    };
  }

  /** The lease lapsed and a new id is held. What others may have put back meanwhile is not this process's any more. */
  async #renamed(former: readonly string[]): Promise<void> {
    if (this.#acting !== this.#presence.id) {
      // First, and in one turn: before that, what clients settle of what they hold is not said to the bus.
      this.#acting = this.#presence.id;
      this.core.cursors.regained(this.core.fleet.others.length > 0);
    }
    this.core.fleet.returned();
    await this.#leadership.seek();
    for (const before of former) await this.lead.run("renamed", { before, after: this.#presence.id });
    await this.consumption.tellAgain();
  }
}
