// Tutorial 1, "Hello World": sends one message.
import amqp from "amqplib";

const queue = process.env.QUEUE ?? "hello";
const text = process.argv.slice(2).join(" ") || "Hello World!";

const connection = await amqp.connect(process.env.AMQP_URL ?? "amqp://localhost");
const channel = await connection.createChannel();
await channel.assertQueue(queue, { durable: false });
channel.sendToQueue(queue, Buffer.from(text));
console.log(` [x] Sent '${text}'`);
await channel.close();
await connection.close();
