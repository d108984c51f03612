// Tutorial 5, "Topics": hears what matches any of its patterns, once.
import amqp from "amqplib";

const exchange = process.env.EXCHANGE ?? "topic_logs";
const patterns = process.argv.slice(2);
if (patterns.length === 0) {
  console.error("Usage: receive-logs-topic.mjs <facility>.<severity>");
  process.exit(1);
}

const connection = await amqp.connect(process.env.AMQP_URL ?? "amqp://localhost");
process.once("SIGINT", () => connection.close());
const channel = await connection.createChannel();
await channel.assertExchange(exchange, "topic", { durable: false });
const { queue } = await channel.assertQueue("", { exclusive: true });
for (const pattern of patterns) await channel.bindQueue(queue, exchange, pattern);
await channel.consume(queue, ({ fields, content }) => console.log(` [x] ${fields.routingKey}:'${content}'`), {
  noAck: true,
});
console.log(" [*] Waiting for logs. To exit press CTRL+C");
