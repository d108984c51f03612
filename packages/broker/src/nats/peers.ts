/**
 * Questions between replicas, as NATS requests.
 *
 * Responsibilities: one subject a replica (`_AMQP.<bucket>.[@<org>.]<replica>`, outside every stream), JSON both ways, and the
 * three ways in which a question stays unanswered. Used by: ground. Separate because only nats/ knows the client.
 */
import {
  type NatsConnection,
  NoRespondersError,
  RequestError,
  type Subscription,
  TimeoutError,
} from "@nats-io/nats-core";
import { type Answerer, PeerAbsent, PeerRefused, PeerSilent, type Peers } from "../core/peers.ts";

interface Answer {
  readonly value?: unknown;
  readonly error?: { readonly name: string; readonly message: string };
}

export class NatsPeers implements Peers {
  readonly #connection: NatsConnection;
  readonly #prefix: string;
  #serving: Subscription | undefined;

  /** `within`: the words of a namespace, `@acme.`; empty for the flat one. */
  constructor(connection: NatsConnection, bucket: string, within = "") {
    this.#connection = connection;
    this.#prefix = `_AMQP.${bucket}.${within}`;
  }

  async ask(replica: string, question: string, details: unknown, patience: number): Promise<unknown> {
    const payload = JSON.stringify({ question, details });
    let answer: Answer;
    try {
      const message = await this.#connection.request(this.#prefix + replica, payload, { timeout: patience });
      answer = message.json<Answer>();
    } catch (error) {
      throw unanswered(error, replica, question);
    }
    if (answer.error !== undefined) throw new PeerRefused(answer.error.name, answer.error.message);
    return answer.value;
  }

  serve(replica: string, answer: Answerer): void {
    this.#serving?.unsubscribe();
    this.#serving = this.#connection.subscribe(this.#prefix + replica, {
      callback: (error, message) => {
        if (error !== null) return;
        const { question, details } = message.json<{ question: string; details: unknown }>();
        void answer(question, details).then(
          (value) => message.respond(JSON.stringify({ value })),
          (failure: unknown) => message.respond(JSON.stringify({ error: describe(failure) })),
        );
      },
    });
  }

  close(): void {
    this.#serving?.unsubscribe();
    this.#serving = undefined;
  }
}

function describe(failure: unknown): { name: string; message: string } {
  return failure instanceof Error
    ? { name: failure.name, message: failure.message }
    : { name: "Error", message: String(failure) };
}

function unanswered(error: unknown, replica: string, question: string): Error {
  const because = { cause: error };
  const what = `replica ${replica}, asked ${question}`;
  if (error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders()))
    return new PeerAbsent(`${what}: nobody answers under that id`, because);
  if (error instanceof TimeoutError) return new PeerSilent(`${what}: no answer in time`, because);
  return new PeerSilent(`${what}: the bus went away`, because);
}
