// Tutorial 2, "Work Queues": hands in one task; each dot in its text is some work.
import amqp from "amqplib";

const queue = process.env.QUEUE ?? "task_queue";
const text = process.argv.slice(2).join(" ") || "Hello World!";

const connection = await amqp.connect(process.env.AMQP_URL ?? "amqp://localhost");
const channel = await connection.createConfirmChannel();
await channel.assertQueue(queue, { durable: true, arguments: { "x-queue-type": "quorum" } });
channel.sendToQueue(queue, Buffer.from(text), { persistent: true });
await channel.waitForConfirms();
console.log(` [x] Sent '${text}'`);
await connection.close();
