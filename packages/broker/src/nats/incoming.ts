/**
 * A delivery of JetStream as the core's {@link Incoming}.
 *
 * Responsibilities: reads the ack subject and the header block without the client's header objects.
 * Used by: pull. Separate because it is the cost of every delivery: one object, no map, no split.
 */
import { Buffer } from "node:buffer";
import type { Msg } from "@nats-io/nats-core";
import type { Incoming } from "../core/bus.ts";
import type { Log } from "../core/log.ts";
import type { Properties } from "../core/message.ts";
import { type AckFacts, readAckSubject } from "./ack-subject.ts";
import { NO_PROPERTIES, readProps } from "./props-header.ts";

const facts: AckFacts = { attempts: 0, sequence: 0, deliverySequence: 0, time: 0 };

class Delivered implements Incoming {
  readonly sequence: number;
  readonly deliverySequence: number;
  readonly attempts: number;
  readonly time: number;
  readonly subject: string;
  readonly properties: Properties;
  readonly body: Uint8Array;
  readonly token: string;

  constructor(subject: string, properties: Properties, body: Uint8Array, token: string, known: AckFacts) {
    this.sequence = known.sequence;
    this.deliverySequence = known.deliverySequence;
    this.attempts = known.attempts;
    this.time = known.time;
    this.subject = subject;
    this.properties = properties;
    this.body = body;
    this.token = token;
  }
}

/** Octets of subject, reply, headers and payload together: what the server counts against a pull's max_bytes. */
export function weigh(message: Msg): number {
  // Every message of the client has it; only its published type leaves it out.
  return (message as unknown as { size(): number }).size();
}

/** `undefined` where it is no delivery (a status, or somebody's stray message on the inbox). */
export function toIncoming(message: Msg, log: Log): Incoming | undefined {
  const token = message.reply;
  if (token === undefined || !readAckSubject(token, facts)) return undefined;
  const subject = message.subject;
  const body = message.data;
  return new Delivered(subject, propertiesOf(message, subject, token, body, log), body, token, facts);
}

/**
 * Headers and payload lie side by side in the client's buffer, so the header block is what stands before the payload;
 * its length is what the message weighs beyond its other parts. Asking for `message.headers` would build a map.
 */
function propertiesOf(message: Msg, subject: string, token: string, body: Uint8Array, log: Log): Properties {
  const rest = weigh(message) - token.length - body.length;
  let length = rest - subject.length;
  // A subject may hold more octets than characters.
  if (length > 0 && body.byteOffset >= length && !startsBlock(body, length)) length = rest - Buffer.byteLength(subject);
  if (length <= 0) return NO_PROPERTIES;
  const properties = readProps(Buffer.from(body.buffer, body.byteOffset - length, length));
  if (properties !== undefined) return properties;
  log.debug({}, `a message on ${subject} carries an Amqp-Props header that is no base64: taken as none`);
  return NO_PROPERTIES;
}

/** "NA", of "NATS/1.0". */
function startsBlock(body: Uint8Array, length: number): boolean {
  const octets = new Uint8Array(body.buffer, body.byteOffset - length, 2);
  return octets[0] === 78 && octets[1] === 65;
}
