/**
 * A delivery of JetStream as the core's {@link Incoming}.
 *
 * Responsibilities: reads the ack subject and the header block without header objects.
 * Used by: ask. Separate because it is the cost of every delivery: one object, no map, no split.
 */
import type { Incoming } from "../core/bus.ts";
import type { Log } from "../core/log.ts";
import type { Properties } from "../core/message.ts";
import { type AckFacts, readAckSubject } from "./ack-subject.ts";
import type { Frame } from "./frame.ts";
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

/** `undefined` where it is no delivery (a status, or somebody's stray message on the inbox). */
export function toIncoming(frame: Frame, log: Log): Incoming | undefined {
  const token = frame.reply;
  if (token === "" || !readAckSubject(token, facts)) return undefined;
  const { subject, body } = frame;
  return new Delivered(subject, propertiesOf(frame, subject, log), body, token, facts);
}

function propertiesOf({ head }: Frame, subject: string, log: Log): Properties {
  if (head === undefined) return NO_PROPERTIES;
  const properties = readProps(head);
  if (properties !== undefined) return properties;
  log.debug({}, `a message on ${subject} carries an Amqp-Props header that is no base64: taken as none`);
  return NO_PROPERTIES;
}
