// Tutorial 6, "RPC": answers with Fibonacci numbers.
import amqp from "amqplib";

const queue = process.env.QUEUE ?? "rpc_queue";

function fibonacci(n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

const connection = await amqp.connect(process.env.AMQP_URL ?? "amqp://localhost");
process.once("SIGINT", () => connection.close());
const channel = await connection.createChannel();
await channel.assertQueue(queue, { durable: false });
await channel.prefetch(1);
await channel.consume(queue, (message) => {
  const n = Number(message.content.toString());
  const { replyTo, correlationId } = message.properties;
  channel.sendToQueue(replyTo, Buffer.from(`${fibonacci(n)}`), { correlationId });
  channel.ack(message);
});
console.log(" [x] Awaiting RPC requests");
