// Tutorial 6, "RPC": asks for a Fibonacci number over an exclusive reply queue.
import { randomUUID } from "node:crypto";
import amqp from "amqplib";

const queue = process.env.QUEUE ?? "rpc_queue";
const n = process.argv[2] ?? "10";

const connection = await amqp.connect(process.env.AMQP_URL ?? "amqp://localhost");
const channel = await connection.createChannel();
const { queue: replyTo } = await channel.assertQueue("", { exclusive: true });
const correlationId = randomUUID();

const answer = new Promise((resolve) => {
  channel.consume(
    replyTo,
    (message) => {
      if (message.properties.correlationId === correlationId) resolve(message.content.toString());
    },
    { noAck: true },
  );
});
console.log(` [x] Requesting fib(${n})`);
channel.sendToQueue(queue, Buffer.from(n), { correlationId, replyTo });
console.log(` [.] Got ${await answer}`);
await connection.close();
