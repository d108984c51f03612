/**
 * The methods of channel 0: handshake, close, update-secret (AMQP 1.4, class 10).
 *
 * Used by: connection, which hands in every method of channel 0. Separate because a handshake is a sequence of methods,
 * and each is taken in its state only.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { FieldTable, FieldValue, Method } from "@amqp/codec";
import { type Admission, isRefused, type Refused } from "../../core/doorkeeper.ts";
import { isRefusal, type Refusal, refuse } from "../../refusals.ts";
import { toClient } from "../client.ts";
import type { Connection } from "../connection.ts";
import type { Handlers, Outcome } from "../handler.ts";
import { MECHANISMS, readLogin } from "../login.ts";
import { checkTuning } from "../tune.ts";

const GONE: Refused = { refused: "it went away" };

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
    connection.handshake.authenticating(toClient(clientProperties));
    const decided = (answer: Admission | Refused): Refusal | undefined => {
      if (!isRefused(answer)) connection.handshake.admitted(answer);
      else if (connection.handshake.turnedAway(mechanism, answer.refused))
        return refuse("login-refused", { wanted: mechanism });
      return undefined;
    };
    if (login === undefined) return decided({ refused: "this mechanism is not offered" });
    const { doorkeeper, suspicion } = connection.connections;
    const ask = () => doorkeeper.admit({ ...login, mechanism, peer: connection.remote });
    const wait = suspicion.wait(connection.origin, performance.now(), connection.limits.handshake / 2);
    if (wait === undefined) return decided({ refused: "too many logins from its address failed: it has to wait" });
    const answer = wait === 0 ? ask() : sleep(wait).then(() => (connection.state === "authenticating" ? ask() : GONE));
    return answer instanceof Promise ? answer.then(decided) : decided(answer);
  },

  "connection.secure-ok": (connection) => unexpected(connection), // no mechanism here sends a challenge

  "connection.tune-ok": (connection, tuning) => {
    if (connection.state !== "tuning") return unexpected(connection);
    const refusal = checkTuning(connection.limits, tuning);
    if (refusal === undefined) connection.handshake.tuned(tuning);
    return refusal;
  },

  "connection.open": (connection, { virtualHost }) => {
    if (connection.state !== "opening") return unexpected(connection);
    if (!connection.identity.owns(virtualHost)) return refuse("no-vhost", { wanted: virtualHost });
    return connection.handshake.open();
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

  "connection.update-secret": async (connection, { newSecret }) => {
    if (connection.state !== "running") return unexpected(connection);
    const refused = await connection.identity.renew(newSecret.toString("utf8"));
    if (connection.state !== "running") return undefined;
    if (refused !== undefined) {
      connection.warn({ why: refused.refused }, "new secret refused");
      return refuse("secret-refused");
    }
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
  else {
    outcome
      .then((late) => {
        if (late !== undefined) connection.refuse(late, name);
      })
      .catch((error: unknown) => connection.broke(error, name));
  }
}

function unexpected(connection: Connection): Outcome {
  return refuse("unexpected-method", { present: connection.state });
}

function longstr(value: string): FieldValue {
  return { type: "longstr", value };
}
