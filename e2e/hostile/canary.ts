// A well-behaved client beside an attack: it publishes, is confirmed, consumes and acknowledges without a pause, and its
// slowest round trip is remembered. Every hostile test runs one: other connections must be unharmed.
import { declare } from "../durability/load.ts";
import { AmqpSocket } from "../harness/socket.ts";

/** A canary that sings. */
export interface Canary {
  /** Ends it; resolves with what it did. Rejects where anything but its own messages came. */
  end(): Promise<{ readonly rounds: number; readonly slowest: number }>;
}

/** Starts a canary on a connection of its own. */
export async function startCanary(at: { readonly host: string; readonly port: number }): Promise<Canary> {
  const socket = await AmqpSocket.open(at);
  await socket.channel(1);
  socket.send(1, "confirm.select", {});
  await socket.expect("confirm.select-ok");
  const queue = `canary-${process.pid}-${Math.round(performance.now() * 1_000)}`;
  await declare(socket, queue, { exclusive: true, durable: false });
  socket.send(1, "basic.consume", { queue, consumerTag: "t" });
  await socket.expect("basic.consume-ok");
  let ended = false;
  const life = sing();

  async function sing(): Promise<{ rounds: number; slowest: number }> {
    let [rounds, slowest] = [0, 0];
    while (!ended) {
      const start = performance.now();
      socket.publish(1, { routingKey: queue }, `round ${rounds}`);
      // The confirm and the delivery come in either order.
      for (let left = 2; left > 0; left--) {
        const received = await socket.next(15_000);
        if (received.kind !== "method") throw new Error(`the canary got ${received.kind}`);
        if (received.method.name === "basic.ack") continue;
        if (received.method.name !== "basic.deliver") throw new Error(`the canary got ${received.method.name}`);
        const { body } = await socket.expectContent();
        if (body.toString() !== `round ${rounds}`) throw new Error(`the canary got ${body} in round ${rounds}`);
        socket.send(1, "basic.ack", { deliveryTag: received.method.fields.deliveryTag });
      }
      slowest = Math.max(slowest, performance.now() - start);
      rounds++;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return { rounds, slowest };
  }

  // Whoever waits for the end hears of it; until then it must not end the test run.
  life.catch(() => undefined);
  return {
    end: async () => {
      ended = true;
      const result = await life;
      socket.destroy();
      return result;
    },
  };
}
