// Tutorial 3, "Publish/Subscribe": hears everything that is said while it listens.
import amqp from "amqplib";

const exchange = process.env.EXCHANGE ?? "logs";

const connection = await amqp.connect(process.env.AMQP_URL ?? "amqp://localhost");
process.once("SIGINT", () => connection.close());
const channel = await connection.createChannel();
await channel.assertExchange(exchange, "fanout", { durable: false });
const { queue } = await channel.assertQueue("", { exclusive: true });
await channel.bindQueue(queue, exchange, "");
await channel.consume(queue, (message) => console.log(` [x] ${message.content}`), { noAck: true });
console.log(" [*] Waiting for logs. To exit press CTRL+C");
