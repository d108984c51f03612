// A consumer that remembers what it was given, for tests of deliveries with amqplib.
// Separate from session.ts: that is about connections and names, this about one subscription.
import type { Channel, ConsumeMessage, Options } from "amqplib";
import { until } from "./session.ts";

/** A subscription and all that it delivered so far. */
export interface Consumer {
  readonly tag: string;
  readonly messages: ConsumeMessage[];
  /** The bodies as texts. */
  readonly texts: string[];
  /** How often the broker cancelled it (basic.cancel). */
  readonly cancels: number;
  /** Waits until `count` messages came in all; returns their texts. */
  received(count: number): Promise<string[]>;
}

/** Subscribes; nothing is acknowledged by itself. */
export async function consume(channel: Channel, queue: string, options?: Options.Consume): Promise<Consumer> {
  const messages: ConsumeMessage[] = [];
  let cancels = 0;
  const take = (message: ConsumeMessage | null): void => {
    if (message === null) cancels++;
    else messages.push(message);
  };
  const { consumerTag: tag } = await channel.consume(queue, take, options);
  const texts = (): string[] => messages.map((message) => message.content.toString());
  return {
    tag,
    messages,
    get texts() {
      return texts();
    },
    get cancels() {
      return cancels;
    },
    received: async (count) => {
      await until(() => messages.length >= count);
      return texts();
    },
  };
}
