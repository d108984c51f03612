// Tutorial 1, "Hello World": prints what comes, until it is interrupted.
import amqp from "amqplib";

const queue = process.env.QUEUE ?? "hello";

const connection = await amqp.connect(process.env.AMQP_URL ?? "amqp://localhost");
process.once("SIGINT", () => connection.close());
const channel = await connection.createChannel();
await channel.assertQueue(queue, { durable: false });
await channel.consume(queue, (message) => console.log(` [x] Received '${message.content}'`), { noAck: true });
console.log(" [*] Waiting for messages. To exit press CTRL+C");
