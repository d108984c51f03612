/**
 * The methods of channel 0: handshake, close, update-secret (AMQP 1.4, class 10).
 *
 * Used by: connection, which hands in every method of channel 0. Separate because a handshake is a sequence of methods,
 * and each is taken in its state only.
 */
import { type FieldTable, type FieldValue, getField, type Method } from "@amqp/codec";
import { isRefusal, refuse } from "../../refusals.ts";
import type { Client, Connection } from "../connection.ts";
import type { Handlers, Outcome } from "../handler.ts";
import { MECHANISMS, readLogin } from "../login.ts";
import { checkTuning } from "../tune.ts";

/** Advertised only where honoured (HIP §4.1; issue, Handshake). */
const CAPABILITIES = [
  "publisher_confirms",
  "basic.nack",
  "consumer_cancel_notify",
  "connection.blocked",
  "per_consumer_qos",
  "authentication_failure_close",
];

/** Answers the protocol header. */
export function sendStart(connection: Connection): void {
  const { version, clusterName } = connection.connections;
  const serverProperties: FieldTable = [
    ["capabilities", { type: "table", value: CAPABILITIES.map((name) => [name, { type: "bool", value: true }]) }],
    ["cluster_name", longstr(clusterName)],
    ["information", longstr("AMQP 0-9-1 on NATS JetStream. Licensed under the Apache License 2.0.")],
    ["platform", longstr(`Node.js ${process.versions.node}`)],
    ["product", longstr("amqp")],
    ["version", longstr(version)],
  ];
  connection.outbox.method(0, "connection.start", {
    versionMajor: 0,
    versionMinor: 9,
    serverProperties,
    mechanisms: MECHANISMS,
    locales: "en_US",
  });
}

const CONNECTION: Handlers<"connection", Connection> = {
  "connection.start-ok": (connection, { clientProperties, mechanism, response }) => {
    if (connection.state !== "starting") return unexpected(connection);
    const login = readLogin(mechanism, response);
    if (login === "malformed") return refuse("login-malformed", { wanted: mechanism });
    if (login === undefined) {
      // RabbitMQ's extension: a client that does not know it takes any close as a lost network.
      if (capability(clientProperties, "authentication_failure_close")) {
        return refuse("login-refused", { wanted: mechanism });
      }
      connection.drop("the client asked for an authentication mechanism that is not offered");
      return undefined;
    }
    connection.authenticated(toClient(login.user, clientProperties));
    const { channelMax, frameMax, heartbeat } = connection.limits;
    connection.outbox.method(0, "connection.tune", { channelMax, frameMax, heartbeat });
    return undefined;
  },

  "connection.secure-ok": (connection) => unexpected(connection), // no mechanism here sends a challenge

  "connection.tune-ok": (connection, tuning) => {
    if (connection.state !== "tuning") return unexpected(connection);
    const refusal = checkTuning(connection.limits, tuning);
    if (refusal === undefined) connection.tuned(tuning);
    return refusal;
  },

  "connection.open": (connection, { virtualHost }) => {
    if (connection.state !== "opening") return unexpected(connection);
    // The empty name too: a URL that ends in a slash makes librabbitmq ask for it.
    if (virtualHost !== "/" && virtualHost !== "") return refuse("no-vhost", { wanted: virtualHost });
    const refusal = connection.connections.forOpen();
    if (refusal === undefined) connection.opened();
    return refusal;
  },

  "connection.close": (connection, { replyCode, replyText }) => {
    if (connection.state === "closing") {
      // It crossed ours.
      connection.outbox.method(0, "connection.close-ok", {});
      connection.closeAnswered();
      return undefined;
    }
    const said = `the client closed it: ${replyCode} ${replyText}`;
    return connection.closeByClient(said).then(() => undefined);
  },

  "connection.close-ok": (connection) => {
    if (connection.state !== "closing") return unexpected(connection);
    connection.closeAnswered();
    return undefined;
  },

  "connection.update-secret": (connection) => {
    if (connection.state !== "running") return unexpected(connection);
    connection.outbox.method(0, "connection.update-secret-ok", {});
    return undefined;
  },
};

/** Runs a method of channel 0; while closing, only the end of it counts. */
export function dispatchConnection(connection: Connection, method: Method): void {
  const { name } = method;
  if (connection.state === "closing" && name !== "connection.close" && name !== "connection.close-ok") return;
  const handler = (CONNECTION as Readonly<Record<string, ((c: Connection, fields: never) => Outcome) | undefined>>)[
    name
  ];
  const outcome = handler === undefined ? unexpected(connection) : handler(connection, method.fields as never);
  if (outcome === undefined) return;
  if (isRefusal(outcome)) connection.refuse(outcome, name);
  else outcome.catch((error: unknown) => connection.broke(error, name));
}

function unexpected(connection: Connection): Outcome {
  return refuse("unexpected-method", { present: connection.state });
}

function toClient(user: string, properties: FieldTable): Client {
  return {
    user,
    name: text(getField(properties, "connection_name")),
    product: text(getField(properties, "product")),
    cancelNotify: capability(properties, "consumer_cancel_notify"),
    blocked: capability(properties, "connection.blocked"),
  };
}

function capability(properties: FieldTable, name: string): boolean {
  const capabilities = getField(properties, "capabilities");
  return capabilities?.type === "table" && getField(capabilities.value, name)?.value === true;
}

/** What strangers call themselves goes into logs: one line, not too long. */
function text(field: FieldValue | undefined): string {
  if (field?.type !== "longstr" || typeof field.value !== "string") return "";
  return field.value.replace(/\p{Cc}/gu, " ").slice(0, 100);
}

function longstr(value: string): FieldValue {
  return { type: "longstr", value };
}
