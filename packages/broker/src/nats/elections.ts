/**
 * Which of the log and the queues' cursors got another leader in a cluster of nats-servers.
 *
 * Responsibilities: listens for JetStream's advisories of elections; a new leader sends its own before it takes
 * settlements and pulls. Used by: bus.ts. Separate because nothing else here listens: without the permission for it, or
 * where one is lost, the waiting pull says so too, later (409, or it is found to be forgotten).
 */
import type { Subscription } from "@nats-io/nats-core";
import type { Link } from "./link.ts";

export interface ElectionsOptions {
  readonly link: Link;
  readonly stream: string;
  /** Another server leads the cursor of that queue, or one leads it for the first time. */
  elected(queue: string): void;
  /** Another server leads the log. */
  logElected(): void;
}

export class Elections {
  readonly #subscriptions: readonly Subscription[];

  constructor({ link, stream, elected, logElected }: ElectionsOptions) {
    const { connection } = link;
    const consumers = `$JS.EVENT.ADVISORY.CONSUMER.LEADER_ELECTED.${stream}.`;
    // No permission is no reason to fail: the client's status says it once.
    this.#subscriptions = [
      connection.subscribe(`${consumers}*`, {
        callback: (error, message) => {
          if (error === null) elected(message.subject.slice(consumers.length));
        },
      }),
      connection.subscribe(`$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.${stream}`, {
        callback: (error) => {
          if (error === null) logElected();
        },
      }),
    ];
  }

  close(): void {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
  }
}
