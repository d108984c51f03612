// Tutorial 2, "Work Queues": does one task at a time, and acknowledges it when it is done.
import { setTimeout as work } from "node:timers/promises";
import amqp from "amqplib";

const queue = process.env.QUEUE ?? "task_queue";

const connection = await amqp.connect(process.env.AMQP_URL ?? "amqp://localhost");
process.once("SIGINT", () => connection.close());
const channel = await connection.createChannel();
await channel.assertQueue(queue, { durable: true, arguments: { "x-queue-type": "quorum" } });
await channel.prefetch(1);
await channel.consume(queue, async (message) => {
  const text = message.content.toString();
  console.log(` [x] Received '${text}'`);
  await work((text.split(".").length - 1) * 100);
  console.log(` [x] Done '${text}'`);
  channel.ack(message);
});
console.log(" [*] Waiting for messages. To exit press CTRL+C");
