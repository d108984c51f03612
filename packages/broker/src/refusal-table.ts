/**
 * The one table of refusals: name → reply code, scope, and the sentence that names the remedy.
 *
 * Responsibilities: every error a client can be answered with. Nobody writes a reply code by hand.
 * Used by: refusals, which fills in the details; the README's table, the unit test (text fits 255 octets, names a remedy)
 * and an e2e case each come from the same rows. Separate because it is data only.
 */

/** What the refusal closes: the channel it came on, or the whole connection. */
export type Scope = "channel" | "connection";

export interface RefusalRow {
  /** The AMQP 0-9-1 reply code; other front ends map the row's name. */
  readonly code: number;
  readonly scope: Scope;
  /** The sentence without the code's name; `{queue}` stands for a detail, `{wanted:40}` for its first 40 octets. */
  readonly text: string;
  /** HIP §4: how the README's table of what is not implemented calls it, and the AMQP class it is asked through. */
  readonly notImplemented?: { readonly what: string; readonly class: string };
}

export const REFUSALS = {
  // Nothing of that name (AMQP 404).
  "no-queue": { code: 404, scope: "channel", text: "no queue '{queue}' in vhost '/'" },
  "no-exchange": { code: 404, scope: "channel", text: "no exchange '{exchange}' in vhost '/'" },
  // Somebody else's (AMQP 405, 403).
  "queue-locked": {
    code: 405,
    scope: "channel",
    text: "cannot obtain exclusive access to locked queue '{queue}' in vhost '/'. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration.",
  },
  "exclusive-use": { code: 403, scope: "channel", text: "queue '{queue}' in vhost '/' in exclusive use" },
  "not-permitted": {
    code: 403,
    scope: "channel",
    text: "the bus does not permit this login to publish to '{text:120}'; grant it there, or use another login",
  },
  "default-exchange": { code: 403, scope: "channel", text: "operation not permitted on the default exchange" },
  "internal-exchange": {
    code: 403,
    scope: "channel",
    text: "cannot publish to internal exchange '{exchange}' in vhost '/'",
  },
  // What is there differs from what was asked for, or is in use (AMQP 406).
  "inequivalent-queue": {
    code: 406,
    scope: "channel",
    text: "inequivalent arg '{argument}' for queue '{queue}' in vhost '/': received '{wanted}' but current is '{present}'",
  },
  "inequivalent-exchange": {
    code: 406,
    scope: "channel",
    text: "inequivalent arg '{argument}' for exchange '{exchange}' in vhost '/': received '{wanted}' but current is '{present}'",
  },
  "quorum-property": {
    code: 406,
    scope: "channel",
    text: "invalid property '{argument}' for queue '{queue}' in vhost '/'",
  },
  "queue-in-use": { code: 406, scope: "channel", text: "queue '{queue}' in vhost '/' in use" },
  "queue-not-empty": { code: 406, scope: "channel", text: "queue '{queue}' in vhost '/' not empty" },
  "exchange-in-use": { code: 406, scope: "channel", text: "exchange '{exchange}' in vhost '/' in use" },
  // What has no spelling on the bus: the translator's own sentence.
  "no-subject": { code: 406, scope: "channel", text: "{text}" },
  "no-filter": { code: 540, scope: "channel", text: "{text}" },
  // What is not implemented, and what to do instead (HIP §4): always on the channel.
  transactions: {
    code: 540,
    scope: "channel",
    text: "transactions are not implemented; a publish is confirmed one at a time through confirm.select",
    notImplemented: { what: "transactions (`tx.*`)", class: "tx" },
  },
  "prefetch-size": {
    code: 540,
    scope: "channel",
    text: "prefetch_size!=0 ({wanted}): bound the channel by message count instead (prefetch-count)",
    notImplemented: { what: "byte-counted qos (prefetch-size ≠ 0)", class: "basic" },
  },
  immediate: {
    code: 540,
    scope: "channel",
    text: "immediate=true: publish with mandatory to learn that nothing is bound",
    notImplemented: { what: "the `immediate` flag", class: "basic" },
  },
  "flow-off": {
    code: 540,
    scope: "channel",
    text: "active=false: pause a consumer with basic.cancel or bound it with basic.qos",
    notImplemented: { what: "`channel.flow(false)`", class: "channel" },
  },
  "exchange-binding": {
    code: 540,
    scope: "channel",
    text: "exchange-to-exchange binding is not implemented; bind the queue to each exchange it should read",
    notImplemented: { what: "exchange-to-exchange binding", class: "exchange" },
  },
  "recover-async": {
    code: 540,
    scope: "channel",
    text: "basic.recover-async is not implemented; use basic.recover, which is answered",
    notImplemented: { what: "`basic.recover-async`", class: "basic" },
  },
  "direct-reply-to": {
    code: 540,
    scope: "channel",
    text: "direct reply-to (amq.rabbitmq.reply-to) is not implemented; declare an exclusive server-named queue, consume it and name it in reply-to",
    notImplemented: { what: "direct reply-to (`amq.rabbitmq.reply-to`)", class: "basic" },
  },
  "sender-selected": {
    code: 540,
    scope: "channel",
    text: "the {argument} header (sender-selected distribution) is not implemented; publish once a routing key",
    notImplemented: { what: "`CC` and `BCC` headers", class: "basic" },
  },
  argument: {
    code: 540,
    scope: "channel",
    text: "argument '{argument:100}' is not implemented; leave it out, or do this in the client",
    notImplemented: {
      what: "`x-` arguments that change behaviour, `alternate-exchange`",
      class: "exchange, queue, basic",
    },
  },
  // What a command says is wrong (AMQP 404, 406, 311).
  "no-previous-queue": { code: 404, scope: "channel", text: "no previously declared queue" },
  "invalid-queue-type": {
    code: 406,
    scope: "channel",
    text: "invalid arg 'x-queue-type' for queue '{queue}' in vhost '/': \"unsupported queue type '{wanted:30}'\"",
  },
  "unacceptable-type": {
    code: 406,
    scope: "channel",
    text: "invalid arg '{argument}' for queue '{queue}' in vhost '/': {unacceptable_type,{wanted:30}}",
  },
  "unknown-tag": { code: 406, scope: "channel", text: "unknown delivery tag {tag}" },
  "foreign-user": {
    code: 406,
    scope: "channel",
    text: "user_id property set to '{wanted:70}' but authenticated user was '{present:70}'",
  },
  "invalid-expiration": {
    code: 406,
    scope: "channel",
    text: "invalid expiration '{wanted:80}': {text:80}",
  },
  "message-too-large": {
    code: 311,
    scope: "channel",
    text: "message size {wanted} is larger than the bus takes ({present}, properties included)",
  },
  "properties-too-large": {
    code: 311,
    scope: "channel",
    text: "properties of {wanted} octets, where the bus takes {present}; move them into the body",
  },
  // More than one connection may have (design §9).
  "too-many": {
    code: 506,
    scope: "channel",
    text: "this connection has {present} {text}, the limit; use another connection or raise the limit",
  },
  "too-many-in-namespace": {
    code: 506,
    scope: "channel",
    text: "this namespace has {present} {text}, the limit; delete some, or raise the limit",
  },
  "too-much-assembling": {
    code: 506,
    scope: "connection",
    text: "more than {present} octets of bodies are announced and not complete; send them one after another",
  },
  "too-many-connections": {
    code: 530,
    scope: "connection",
    text: "access to vhost '/' refused: connection limit ({present}) is reached; close other connections first",
  },
  "too-many-from-address": {
    code: 530,
    scope: "connection",
    text: "access to vhost '/' refused: connection limit ({present}) of this address is reached; close other connections first",
  },
  "too-many-of-user": {
    code: 530,
    scope: "connection",
    text: "access to vhost '/' refused: connection limit ({present}) of this user is reached; close other connections first",
  },
  // The handshake.
  "login-refused": {
    code: 403,
    scope: "connection",
    text: "Login was refused using authentication mechanism {wanted:40}. For details see the broker logfile.",
  },
  "login-expired": {
    code: 320,
    scope: "connection",
    text: "the login's token has expired; connect with a fresh one, or bring it in time by connection.update-secret",
  },
  "secret-refused": {
    code: 530,
    scope: "connection",
    text: "New secret was refused by one of the backends; connect again with a valid one of the same identity",
  },
  "login-malformed": {
    code: 502,
    scope: "connection",
    text: "the response of mechanism {wanted:40} is malformed",
  },
  "tune-too-high": {
    code: 530,
    scope: "connection",
    text: "negotiated {argument} = {wanted} is higher than the maximum allowed value ({present})",
  },
  "tune-too-low": {
    code: 530,
    scope: "connection",
    text: "negotiated {argument} = {wanted} is lower than the minimum allowed value ({present})",
  },
  "no-vhost": { code: 530, scope: "connection", text: "vhost {wanted} not found" },
  "handshake-late": {
    code: 320,
    scope: "connection",
    text: "the connection was not open after {present} ms; answer the handshake sooner",
  },
  "handshake-too-long": {
    code: 506,
    scope: "connection",
    text: "more than {present} octets came before connection.open; send fewer client properties",
  },
  // Frames and methods that may not come here, or not now (AMQP 503–505, 530).
  "channel-not-open": { code: 504, scope: "connection", text: "expected 'channel.open'" },
  "channel-opened-twice": { code: 504, scope: "connection", text: "second 'channel.open' seen" },
  "channel-number": {
    code: 504,
    scope: "connection",
    text: "channel {wanted} is higher than the negotiated channel_max ({present})",
  },
  "unexpected-method": {
    code: 504,
    scope: "connection",
    text: "unexpected method in connection state {present}",
  },
  "unimplemented-method": { code: 503, scope: "connection", text: "unimplemented method" },
  "unexpected-frame": {
    code: 505,
    scope: "connection",
    text: "type {wanted} on channel {present}, where only another type may come",
  },
  "malformed-heartbeat": { code: 501, scope: "connection", text: "type 8: a heartbeat has no payload" },
  "consumer-tag-in-use": {
    code: 530,
    scope: "connection",
    text: "attempt to reuse consumer tag '{tag:180}'",
  },
  // This side ends it.
  forced: {
    code: 320,
    scope: "connection",
    text: "broker forced connection closure with reason '{text:150}'",
  },
  "stood-still": {
    code: 320,
    scope: "connection",
    text: "this replica stood still for longer than its lease, and what it had for you may be others' by now; connect again",
  },
  silent: {
    code: 320,
    scope: "connection",
    text: "missed heartbeats from client, timeout: {present}s",
  },
  bug: {
    code: 541,
    scope: "connection",
    text: "the broker met a bug, which stands in its log; connect again, and report it",
  },
  // The bus.
  "bus-silent": {
    code: 320,
    scope: "connection",
    text: "the bus did not answer; nothing is known of the last command: connect again and repeat it",
  },
} as const; // that each is a RefusalRow, `refuse` has checked
