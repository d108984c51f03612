// Tutorial 3, "Publish/Subscribe": tells everyone.
import amqp from "amqplib";

const exchange = process.env.EXCHANGE ?? "logs";
const text = process.argv.slice(2).join(" ") || "info: Hello World!";

const connection = await amqp.connect(process.env.AMQP_URL ?? "amqp://localhost");
const channel = await connection.createChannel();
await channel.assertExchange(exchange, "fanout", { durable: false });
channel.publish(exchange, "", Buffer.from(text));
console.log(` [x] Sent '${text}'`);
await channel.close();
await connection.close();
