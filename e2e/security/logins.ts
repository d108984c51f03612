// Connections of client libraries under any login, closed after the test. Used by the tests of who may connect.
// Separate from clients/session.ts, which knows one broker and one login.
import { type ChannelModel, type ConfirmChannel, connect as connectTo } from "amqplib";
import { afterEach } from "vitest";

const connections: Set<ChannelModel> = new Set();

export interface Login {
  readonly user?: string;
  readonly password: string;
  readonly vhost?: string;
}

/** An amqplib connection; rejects as amqplib does where the login or the virtual host is refused. */
export async function login(port: number, { user = "", password, vhost = "/" }: Login): Promise<ChannelModel> {
  const to = { protocol: "amqp", hostname: "127.0.0.1", port, username: user, password, vhost };
  const connection = await connectTo(to, { noDelay: true });
  connection.on("error", () => undefined); // tests that expect one listen too
  connection.on("close", () => connections.delete(connection));
  connections.add(connection);
  return connection;
}

/** A channel with confirms whose errors are kept: the reply code of the latest. */
export async function channelOf(connection: ChannelModel): Promise<ConfirmChannel & { readonly codes: number[] }> {
  const channel = await connection.createConfirmChannel();
  const codes: number[] = [];
  channel.on("error", (error: { code?: number }) => codes.push(error.code ?? 0));
  return Object.assign(channel, { codes });
}

/** Why a connection is closed by the other side. A 320 is no error to amqplib: only its close tells. */
export function closing(connection: ChannelModel): Promise<{ readonly code?: number; readonly message: string }> {
  return new Promise((resolve) => connection.once("close", resolve));
}

/** Gets and acknowledges all that is ready, as texts. */
export async function drain(channel: ConfirmChannel, queue: string): Promise<string[]> {
  const texts: string[] = [];
  for (;;) {
    const message = await channel.get(queue, { noAck: true });
    if (message === false) return texts;
    texts.push(message.content.toString());
  }
}

/** Publishes and waits for the confirms. */
export async function publish(channel: ConfirmChannel, exchange: string, key: string, text: string): Promise<void> {
  channel.publish(exchange, key, Buffer.from(text), { persistent: true });
  await channel.waitForConfirms();
}

afterEach(async () => {
  await Promise.all([...connections].map((connection) => connection.close().catch(() => undefined)));
  connections.clear();
});
