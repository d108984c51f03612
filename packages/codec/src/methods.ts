// THE table: every AMQP 0-9-1 method with its ids, who may send it, and its fields in wire order.
// The engine (method.ts) reads it to decode and encode, the types (types.ts) are derived from it, and the broker's
// class files are checked against it; nothing about a method is written anywhere else. It is data only, separate
// from the code that interprets it, so that it can be compared line by line with docs/spec/amqp-0-9-1.json (a test does).
import type { WireType } from "./types.ts";

/** Who may send a method: the client, the server, or either. */
export type Sender = "client" | "server" | "both";

/** One row of {@link METHODS}. */
export interface MethodSpec {
  /** The class part of the method's id (AMQP 4.2.4). */
  readonly classId: number;
  /** The method part of the method's id, unique within its class. */
  readonly methodId: number;
  readonly from: Sender;
  /** The sender waits for a reply. */
  readonly sync?: true;
  /** A content header and body frames follow. */
  readonly content?: true;
  /** Name and wire type of each field in wire order; consecutive bits share one octet, lowest bit first. */
  readonly fields: readonly (readonly [name: string, type: WireType])[];
}

/** All 66 methods of AMQP 0-9-1 as RabbitMQ clients speak it, by name; each row is a {@link MethodSpec}. */
// biome-ignore format: one row a method
export const METHODS = {
  // connection (10)
  "connection.start": { classId: 10, methodId: 10, from: "server", sync: true, fields: [["versionMajor", "octet"], ["versionMinor", "octet"], ["serverProperties", "table"], ["mechanisms", "longstr"], ["locales", "longstr"]] },
  "connection.start-ok": { classId: 10, methodId: 11, from: "client", fields: [["clientProperties", "table"], ["mechanism", "shortstr"], ["response", "longstr"], ["locale", "shortstr"]] },
  "connection.secure": { classId: 10, methodId: 20, from: "server", sync: true, fields: [["challenge", "longstr"]] },
  "connection.secure-ok": { classId: 10, methodId: 21, from: "client", fields: [["response", "longstr"]] },
  "connection.tune": { classId: 10, methodId: 30, from: "server", sync: true, fields: [["channelMax", "short"], ["frameMax", "long"], ["heartbeat", "short"]] },
  "connection.tune-ok": { classId: 10, methodId: 31, from: "client", fields: [["channelMax", "short"], ["frameMax", "long"], ["heartbeat", "short"]] },
  "connection.open": { classId: 10, methodId: 40, from: "client", sync: true, fields: [["virtualHost", "shortstr"], ["capabilities", "shortstr"], ["insist", "bit"]] },
  "connection.open-ok": { classId: 10, methodId: 41, from: "server", fields: [["knownHosts", "shortstr"]] },
  "connection.close": { classId: 10, methodId: 50, from: "both", sync: true, fields: [["replyCode", "short"], ["replyText", "shortstr"], ["classId", "short"], ["methodId", "short"]] },
  "connection.close-ok": { classId: 10, methodId: 51, from: "both", fields: [] },
  "connection.blocked": { classId: 10, methodId: 60, from: "server", fields: [["reason", "shortstr"]] },
  "connection.unblocked": { classId: 10, methodId: 61, from: "server", fields: [] },
  "connection.update-secret": { classId: 10, methodId: 70, from: "client", sync: true, fields: [["newSecret", "longstr"], ["reason", "shortstr"]] },
  "connection.update-secret-ok": { classId: 10, methodId: 71, from: "server", fields: [] },
  // channel (20)
  "channel.open": { classId: 20, methodId: 10, from: "client", sync: true, fields: [["outOfBand", "shortstr"]] },
  "channel.open-ok": { classId: 20, methodId: 11, from: "server", fields: [["channelId", "longstr"]] },
  "channel.flow": { classId: 20, methodId: 20, from: "both", sync: true, fields: [["active", "bit"]] },
  "channel.flow-ok": { classId: 20, methodId: 21, from: "both", fields: [["active", "bit"]] },
  "channel.close": { classId: 20, methodId: 40, from: "both", sync: true, fields: [["replyCode", "short"], ["replyText", "shortstr"], ["classId", "short"], ["methodId", "short"]] },
  "channel.close-ok": { classId: 20, methodId: 41, from: "both", fields: [] },
  // access (30)
  "access.request": { classId: 30, methodId: 10, from: "client", sync: true, fields: [["realm", "shortstr"], ["exclusive", "bit"], ["passive", "bit"], ["active", "bit"], ["write", "bit"], ["read", "bit"]] },
  "access.request-ok": { classId: 30, methodId: 11, from: "server", fields: [["ticket", "short"]] },
  // exchange (40)
  "exchange.declare": { classId: 40, methodId: 10, from: "client", sync: true, fields: [["ticket", "short"], ["exchange", "shortstr"], ["type", "shortstr"], ["passive", "bit"], ["durable", "bit"], ["autoDelete", "bit"], ["internal", "bit"], ["nowait", "bit"], ["arguments", "table"]] },
  "exchange.declare-ok": { classId: 40, methodId: 11, from: "server", fields: [] },
  "exchange.delete": { classId: 40, methodId: 20, from: "client", sync: true, fields: [["ticket", "short"], ["exchange", "shortstr"], ["ifUnused", "bit"], ["nowait", "bit"]] },
  "exchange.delete-ok": { classId: 40, methodId: 21, from: "server", fields: [] },
  "exchange.bind": { classId: 40, methodId: 30, from: "client", sync: true, fields: [["ticket", "short"], ["destination", "shortstr"], ["source", "shortstr"], ["routingKey", "shortstr"], ["nowait", "bit"], ["arguments", "table"]] },
  "exchange.bind-ok": { classId: 40, methodId: 31, from: "server", fields: [] },
  "exchange.unbind": { classId: 40, methodId: 40, from: "client", sync: true, fields: [["ticket", "short"], ["destination", "shortstr"], ["source", "shortstr"], ["routingKey", "shortstr"], ["nowait", "bit"], ["arguments", "table"]] },
  "exchange.unbind-ok": { classId: 40, methodId: 51, from: "server", fields: [] },
  // queue (50)
  "queue.declare": { classId: 50, methodId: 10, from: "client", sync: true, fields: [["ticket", "short"], ["queue", "shortstr"], ["passive", "bit"], ["durable", "bit"], ["exclusive", "bit"], ["autoDelete", "bit"], ["nowait", "bit"], ["arguments", "table"]] },
  "queue.declare-ok": { classId: 50, methodId: 11, from: "server", fields: [["queue", "shortstr"], ["messageCount", "long"], ["consumerCount", "long"]] },
  "queue.bind": { classId: 50, methodId: 20, from: "client", sync: true, fields: [["ticket", "short"], ["queue", "shortstr"], ["exchange", "shortstr"], ["routingKey", "shortstr"], ["nowait", "bit"], ["arguments", "table"]] },
  "queue.bind-ok": { classId: 50, methodId: 21, from: "server", fields: [] },
  "queue.purge": { classId: 50, methodId: 30, from: "client", sync: true, fields: [["ticket", "short"], ["queue", "shortstr"], ["nowait", "bit"]] },
  "queue.purge-ok": { classId: 50, methodId: 31, from: "server", fields: [["messageCount", "long"]] },
  "queue.delete": { classId: 50, methodId: 40, from: "client", sync: true, fields: [["ticket", "short"], ["queue", "shortstr"], ["ifUnused", "bit"], ["ifEmpty", "bit"], ["nowait", "bit"]] },
  "queue.delete-ok": { classId: 50, methodId: 41, from: "server", fields: [["messageCount", "long"]] },
  "queue.unbind": { classId: 50, methodId: 50, from: "client", sync: true, fields: [["ticket", "short"], ["queue", "shortstr"], ["exchange", "shortstr"], ["routingKey", "shortstr"], ["arguments", "table"]] },
  "queue.unbind-ok": { classId: 50, methodId: 51, from: "server", fields: [] },
  // basic (60)
  "basic.qos": { classId: 60, methodId: 10, from: "client", sync: true, fields: [["prefetchSize", "long"], ["prefetchCount", "short"], ["global", "bit"]] },
  "basic.qos-ok": { classId: 60, methodId: 11, from: "server", fields: [] },
  "basic.consume": { classId: 60, methodId: 20, from: "client", sync: true, fields: [["ticket", "short"], ["queue", "shortstr"], ["consumerTag", "shortstr"], ["noLocal", "bit"], ["noAck", "bit"], ["exclusive", "bit"], ["nowait", "bit"], ["arguments", "table"]] },
  "basic.consume-ok": { classId: 60, methodId: 21, from: "server", fields: [["consumerTag", "shortstr"]] },
  "basic.cancel": { classId: 60, methodId: 30, from: "both", sync: true, fields: [["consumerTag", "shortstr"], ["nowait", "bit"]] },
  "basic.cancel-ok": { classId: 60, methodId: 31, from: "both", fields: [["consumerTag", "shortstr"]] },
  "basic.publish": { classId: 60, methodId: 40, from: "client", content: true, fields: [["ticket", "short"], ["exchange", "shortstr"], ["routingKey", "shortstr"], ["mandatory", "bit"], ["immediate", "bit"]] },
  "basic.return": { classId: 60, methodId: 50, from: "server", content: true, fields: [["replyCode", "short"], ["replyText", "shortstr"], ["exchange", "shortstr"], ["routingKey", "shortstr"]] },
  "basic.deliver": { classId: 60, methodId: 60, from: "server", content: true, fields: [["consumerTag", "shortstr"], ["deliveryTag", "longlong"], ["redelivered", "bit"], ["exchange", "shortstr"], ["routingKey", "shortstr"]] },
  "basic.get": { classId: 60, methodId: 70, from: "client", sync: true, fields: [["ticket", "short"], ["queue", "shortstr"], ["noAck", "bit"]] },
  "basic.get-ok": { classId: 60, methodId: 71, from: "server", content: true, fields: [["deliveryTag", "longlong"], ["redelivered", "bit"], ["exchange", "shortstr"], ["routingKey", "shortstr"], ["messageCount", "long"]] },
  "basic.get-empty": { classId: 60, methodId: 72, from: "server", fields: [["clusterId", "shortstr"]] },
  "basic.ack": { classId: 60, methodId: 80, from: "both", fields: [["deliveryTag", "longlong"], ["multiple", "bit"]] },
  "basic.reject": { classId: 60, methodId: 90, from: "client", fields: [["deliveryTag", "longlong"], ["requeue", "bit"]] },
  "basic.recover-async": { classId: 60, methodId: 100, from: "client", fields: [["requeue", "bit"]] },
  "basic.recover": { classId: 60, methodId: 110, from: "client", sync: true, fields: [["requeue", "bit"]] },
  "basic.recover-ok": { classId: 60, methodId: 111, from: "server", fields: [] },
  "basic.nack": { classId: 60, methodId: 120, from: "both", fields: [["deliveryTag", "longlong"], ["multiple", "bit"], ["requeue", "bit"]] },
  // tx (90)
  "tx.select": { classId: 90, methodId: 10, from: "client", sync: true, fields: [] },
  "tx.select-ok": { classId: 90, methodId: 11, from: "server", fields: [] },
  "tx.commit": { classId: 90, methodId: 20, from: "client", sync: true, fields: [] },
  "tx.commit-ok": { classId: 90, methodId: 21, from: "server", fields: [] },
  "tx.rollback": { classId: 90, methodId: 30, from: "client", sync: true, fields: [] },
  "tx.rollback-ok": { classId: 90, methodId: 31, from: "server", fields: [] },
  // confirm (85)
  "confirm.select": { classId: 85, methodId: 10, from: "client", sync: true, fields: [["nowait", "bit"]] },
  "confirm.select-ok": { classId: 85, methodId: 11, from: "server", fields: [] },
} as const;
