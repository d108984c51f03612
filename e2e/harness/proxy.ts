// A TCP proxy that a test can break: how a client library's reconnecting is tried without stopping the broker.
// Used by e2e/clients. Separate because it knows nothing of AMQP.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A listening proxy. */
export interface TcpProxy {
  readonly host: string;
  readonly port: number;
  /** How many connections were accepted so far. */
  readonly accepted: number;
  /** Resets every open connection; new ones are accepted as before. */
  cut(): void;
  close(): Promise<void>;
}

/** Forwards each connection to `host:port`. */
export async function startProxy(host: string, port: number): Promise<TcpProxy> {
  const sockets: Set<Socket> = new Set();
  let accepted = 0;
  const server = createServer((near) => {
    accepted++;
    const far = connect(port, host);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = (): void => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    host: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    get accepted() {
      return accepted;
    },
    cut,
    close: async () => {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}
