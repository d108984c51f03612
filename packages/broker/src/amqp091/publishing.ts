/**
 * basic.publish, up to the bus: the hot path, synchronous from the command to the core's publish.
 *
 * Responsibilities: finding the route (kept per exchange and key while the topology stands still), checking what the
 * properties ask for, returning what is mandatory and unroutable, publishing.
 * Used by: channel, handlers/basic. Separate because nothing else may slow it down.
 *
 * Negative answers are provisional (design §4, FENCE): the mirror is caught up first and asked again. Publishes that
 * arrived before the catching up began share it.
 */
import { type FieldsOf, peekProperty } from "@amqp/codec";
import type { Route, Verbs } from "../core/verbs.ts";
import { isRefusal, type Refusal, refuse } from "../refusals.ts";
import type { Channel } from "./channel.ts";
import { checkExpiration } from "./expiration.ts";
import type { Content, Outcome } from "./handler.ts";

type Publish = FieldsOf<"basic.publish">;

// Bits of the property flags, the first octets of the properties (AMQP 4.2.6.1).
const HEADERS = 0x2000;
const REPLY_TO = 0x0200;
const EXPIRATION = 0x0100;
const USER_ID = 0x0010;
const LOOKED_AT = HEADERS | REPLY_TO | EXPIRATION | USER_ID;

/** NATS refuses message headers of 64 KiB. */
const HEADERS_MAX = 65_000;
/** Routes kept per channel. */
const ROUTES_MAX = 4096;

export const REPLY_TO_QUEUE = "amq.rabbitmq.reply-to";

/** A header's name with its length octet, as it stands in a table. */
const SENDER_SELECTED = ["CC", "BCC"].map((name) => Buffer.from([name.length, ...Buffer.from(name)]));

export class Publishing {
  readonly #channel: Channel;
  readonly #verbs: Verbs;
  readonly #routes: Map<string, Map<string, Route>> = new Map<string, Map<string, Route>>();
  #routesKept = 0;
  #routesVersion = -1;
  /** Commands that arrived up to this one are answered from a mirror that was caught up after them. */
  #caughtUp = 0;

  constructor(channel: Channel, verbs: Verbs) {
    this.#channel = channel;
    this.#verbs = verbs;
  }

  /** On the content header, before any body is read (HIP, Security Considerations). */
  checkSize(propertiesLength: number, bodySize: number): Refusal | undefined {
    const encoded = this.#verbs.encodedSize(propertiesLength);
    if (encoded > HEADERS_MAX) {
      return refuse("properties-too-large", { wanted: `${propertiesLength}`, present: `${HEADERS_MAX} encoded` });
    }
    const size = bodySize + encoded;
    const own = this.#channel.connection.limits.messageSize;
    if (bodySize > own) return refuse("message-too-large", { wanted: `${bodySize}`, present: `${own}` });
    const max = this.#verbs.maxMessageSize;
    return size > max ? refuse("message-too-large", { wanted: `${size}`, present: `${max}` }) : undefined;
  }

  publish(fields: Publish, content: Content): Outcome {
    if (fields.immediate) return refuse("immediate");
    const route = this.#route(fields.exchange, fields.routingKey);
    if (isRefusal(route)) return this.#caughtUp >= content.arrival ? route : this.#again(fields, content);
    const refusal = this.#checkProperties(content.properties);
    if (refusal !== undefined) return refusal;
    const { confirms } = this.#channel;
    const isUnsure = fields.mandatory && this.#caughtUp < content.arrival;
    if (isUnsure && !(this.#verbs.isCurrent && this.#verbs.routable(route))) return this.#again(fields, content);
    if (fields.mandatory && !this.#verbs.routable(route)) {
      this.#channel.returnUnroutable(fields, content);
      confirms.returned(confirms.open());
      return undefined;
    }
    this.#verbs.publish(route, content.properties, content.body, confirms, confirms.open());
    this.#channel.connection.published();
    return undefined;
  }

  /** Catches up, for this publish and all that arrived in the same turn, and publishes again. */
  async #again(fields: Publish, content: Content): Promise<Refusal | undefined> {
    await undefined; // the rest of this turn's commands arrives
    const { arrivals } = this.#channel;
    await this.#verbs.fence();
    this.#caughtUp = arrivals;
    return this.#channel.isOpen ? this.publish(fields, content) : undefined;
  }

  #route(exchange: string, routingKey: string): Route | Refusal {
    const version = this.#verbs.topologyVersion;
    if (version !== this.#routesVersion || this.#routesKept >= ROUTES_MAX) {
      this.#routes.clear();
      this.#routesKept = 0;
      this.#routesVersion = version;
    }
    let routes = this.#routes.get(exchange);
    const kept = routes?.get(routingKey);
    if (kept !== undefined) return kept;
    const route = this.#verbs.route(exchange, routingKey);
    if (isRefusal(route)) return route;
    if (routes === undefined) {
      routes = new Map<string, Route>();
      this.#routes.set(exchange, routes);
    }
    routes.set(routingKey, route);
    this.#routesKept++;
    return route;
  }

  #checkProperties(properties: Uint8Array): Refusal | undefined {
    const flags = ((properties[0] ?? 0) << 8) | (properties[1] ?? 0);
    if ((flags & LOOKED_AT) === 0) return undefined;
    if ((flags & USER_ID) !== 0) {
      const user = peekProperty(properties, "userId") ?? "";
      const present = this.#channel.connection.identity.user;
      if (user !== present) return refuse("foreign-user", { wanted: user, present });
    }
    if ((flags & EXPIRATION) !== 0) {
      const refusal = checkExpiration(peekProperty(properties, "expiration") ?? "");
      if (refusal !== undefined) return refusal;
    }
    if ((flags & REPLY_TO) !== 0 && peekProperty(properties, "replyTo") === REPLY_TO_QUEUE) {
      return refuse("direct-reply-to");
    }
    return (flags & HEADERS) === 0 ? undefined : checkHeaders(properties);
  }
}

/** CC and BCC route to more queues than the key does: what is not built is refused, never ignored. */
function checkHeaders(properties: Uint8Array): Refusal | undefined {
  const octets = Buffer.from(properties.buffer, properties.byteOffset, properties.byteLength);
  // A look at the octets spares nearly every message the decoding.
  if (!SENDER_SELECTED.some((name) => octets.includes(name))) return undefined;
  for (const [name] of peekProperty(properties, "headers") ?? []) {
    if (name === "CC" || name === "BCC") return refuse("sender-selected", { argument: name });
  }
  return undefined;
}
