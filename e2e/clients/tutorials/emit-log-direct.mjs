// Tutorial 4, "Routing": says something of one severity.
import amqp from "amqplib";

const exchange = process.env.EXCHANGE ?? "direct_logs";
const [severity = "info", ...words] = process.argv.slice(2);
const text = words.join(" ") || "Hello World!";

const connection = await amqp.connect(process.env.AMQP_URL ?? "amqp://localhost");
const channel = await connection.createChannel();
await channel.assertExchange(exchange, "direct", { durable: false });
channel.publish(exchange, severity, Buffer.from(text));
console.log(` [x] Sent ${severity}:'${text}'`);
await channel.close();
await connection.close();
