// What our gateway does otherwise than RabbitMQ, on purpose: one row each, with the clause that asks for it.
// Tests ask `differs("…")` to choose what to expect of the target; differences.test.ts fails for a row no test asks
// about. Separate so that the whole list can be read, and argued with, in one place.
import { isReference } from "../harness/reference.ts";

interface Difference {
  /** What RabbitMQ 4 does. */
  readonly rabbitmq: string;
  /** What the gateway does. */
  readonly here: string;
  /** Where that is decided: HIP-1326, the AMQP 0-9-1 specification, or this project's issue. */
  readonly clause: string;
}

export const DIFFERENCES = {
  "multiple-on-nothing": {
    rabbitmq: "406 unknown delivery tag for an ack or nack with multiple that matches nothing",
    here: "no error",
    clause: "HIP §3",
  },
  "recover-without-requeue": {
    rabbitmq: "540 on the connection",
    here: "requeues, as with requeue=true",
    clause: "HIP §3",
  },
  "recover-async": { rabbitmq: "requeues", here: "540 on the channel, naming basic.recover", clause: "HIP §4" },
  "prefetch-size": { rabbitmq: "540 on the connection", here: "540 on the channel", clause: "HIP §4" },
  immediate: { rabbitmq: "540 on the connection", here: "540 on the channel, naming mandatory", clause: "HIP §4" },
  "flow-false": { rabbitmq: "540 on the connection", here: "540 on the channel", clause: "HIP §4" },
  transactions: { rabbitmq: "tx.select-ok", here: "540 on the channel, naming confirm.select", clause: "HIP §4" },
  "headers-exchange": { rabbitmq: "a headers exchange", here: "540 on the channel", clause: "HIP §2, §4" },
  "exchange-to-exchange": { rabbitmq: "exchange.bind-ok", here: "540 on the channel", clause: "HIP §4" },
  "hash-before-the-end": {
    rabbitmq: "matches zero or more words anywhere",
    here: "540 on the channel",
    clause: "HIP §2.1",
  },
  "partial-wildcard": { rabbitmq: "a word like any other", here: "540 on the channel", clause: "HIP §2.1" },
  "direct-wildcard": { rabbitmq: "matches literally", here: "540 on the channel", clause: "HIP §2.1" },
  names: {
    rabbitmq: "any name of at most 255 octets",
    here: "one word of A-Z a-z 0-9 _ - and at most 128 characters, else 406 on the channel",
    clause: "HIP §2",
  },
  "publish-keys": {
    rabbitmq: "any routing key",
    here: "406 on the channel for an empty word, a wildcard, whitespace or a control character in a published key",
    clause: "HIP §2",
  },
  "reserved-names": {
    rabbitmq: "403 for a new name that starts with amq.",
    here: "406 by the rule of names: no name holds a dot",
    clause: "HIP §2",
  },
  "predeclared-exchanges": {
    rabbitmq: "amq.direct, amq.fanout, amq.topic and amq.headers exist",
    here: "no name holds a dot, so they cannot exist",
    clause: "HIP §2",
  },
  "server-names": { rabbitmq: "amq.gen-…", here: "amq-gen-…", clause: "HIP §2" },
  "queue-arguments": {
    rabbitmq: "x-message-ttl, x-expires, x-dead-letter-exchange and others are honoured, unknown ones ignored",
    here: "540 on the channel, naming the argument that is not built",
    clause: "issue 2, queues",
  },
  "exchange-arguments": {
    rabbitmq: "alternate-exchange is honoured",
    here: "540 on the channel, naming it",
    clause: "issue 2, exchanges",
  },
  "confirms-in-order": {
    rabbitmq: "gathers confirms into multiple, and sends unroutable messages' before others",
    here: "one basic.ack a message, in order",
    clause: "HIP §4.1",
  },
  "direct-reply-to": {
    rabbitmq: "replies through the pseudo-queue amq.rabbitmq.reply-to",
    here: "540 on the channel, naming the exclusive reply queue of tutorial 6",
    clause: "HIP §2: a queue is a consumer on the stream",
  },
  "empty-vhost": { rabbitmq: "530 for vhost ''", here: "the same as vhost /", clause: "issue 2, handshake" },
  "tune-refusal": {
    rabbitmq: "drops the socket some seconds after a channel-max or frame-max out of bounds, without a word",
    here: "530 on the connection first",
    clause: "issue 2, handshake",
  },
  "content-too-large": {
    rabbitmq: "406 on the channel once the whole body has come",
    here: "311 on the channel, on the content header",
    clause: "HIP Security Considerations, issue 2, sizes",
  },
  "syntax-errors": {
    rabbitmq: "501 for arguments that cannot be decoded; drops the socket for a method or a field type unknown to it",
    here: "502 for such arguments, 503 for such methods",
    clause: "AMQP 0-9-1, reply codes syntax-error and command-invalid",
  },
  "body-too-long": {
    rabbitmq: "takes a body frame beyond the size in the header",
    here: "505 on the connection",
    clause: "AMQP 4.2.6.2",
  },
  "malformed-properties": {
    rabbitmq: "541 on the connection, or none",
    here: "502 on the connection",
    clause: "AMQP 4.2.6.1",
  },
  "foreign-header": {
    rabbitmq: "answers AMQP 3 1 0 0 (its AMQP 1.0 with SASL) to a header that it does not speak",
    here: "answers AMQP 0 0 9 1",
    clause: "AMQP 4.2.2",
  },
  "refusal-remedies": {
    rabbitmq: "names what is wrong",
    here: "adds what to do instead, after RabbitMQ's words",
    clause: "HIP §4",
  },
} as const satisfies Record<string, Difference>;

/** The id of a row. */
export type DifferenceId = keyof typeof DIFFERENCES;

/** Whether the target differs from RabbitMQ in this: true on our gateway. */
export function differs(_id: DifferenceId): boolean {
  return !isReference;
}
