// Tutorial 5, "Topics": says something about a subject.
import amqp from "amqplib";

const exchange = process.env.EXCHANGE ?? "topic_logs";
const [key = "anonymous.info", ...words] = process.argv.slice(2);
const text = words.join(" ") || "Hello World!";

const connection = await amqp.connect(process.env.AMQP_URL ?? "amqp://localhost");
const channel = await connection.createChannel();
await channel.assertExchange(exchange, "topic", { durable: false });
channel.publish(exchange, key, Buffer.from(text));
console.log(` [x] Sent ${key}:'${text}'`);
await channel.close();
await connection.close();
