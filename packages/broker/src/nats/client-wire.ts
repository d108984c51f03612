/**
 * The data path through the client's own calls: right with any version of it, and slower.
 *
 * Used by: wire, where the client has not the seams that hand-wire needs. Separate because it is the one thing that a
 * maintainer keeps if those seams ever go.
 */
import { Buffer } from "node:buffer";
import type { MsgHdrs, NatsConnection } from "@nats-io/nats-core";
import { ClientFrame } from "./frame.ts";
import type { FrameHandler } from "./splitter.ts";
import type { Outgoing, Wire, WireSubscription } from "./wire.ts";

export class ClientWire implements Wire {
  stands: () => boolean = () => true;
  readonly #connection: NatsConnection;

  constructor(connection: NatsConnection) {
    this.#connection = connection;
  }

  subscribe(subject: string, handler: FrameHandler, failed: (error: Error) => void): WireSubscription {
    return this.#connection.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) handler(new ClientFrame(message));
        else failed(error);
      },
    });
  }

  publish(subject: string, reply: string, payload: Uint8Array): void {
    this.#connection.publish(subject, payload, reply === "" ? {} : { reply });
  }

  settle(subject: string, payload: Uint8Array): void {
    this.publish(subject, "", payload);
  }

  send({ subject, head, body }: Outgoing, inbox: string, number: number): void {
    const [first] = body;
    const payload = body.length === 1 && first !== undefined ? first : Buffer.concat(body);
    // The client's publish calls nothing but encode(); the block is built by hand.
    const headers = { encode: () => head } as unknown as MsgHdrs;
    this.#connection.publish(subject, payload, { headers, reply: `${inbox}${number}` });
  }

  flush(): void {
    // The client keeps the order of its own calls.
  }

  hurry(): void {
    void this.#connection.flush().catch(() => undefined);
  }
}
