// Tutorial 4, "Routing": hears the severities it is asked for.
import amqp from "amqplib";

const exchange = process.env.EXCHANGE ?? "direct_logs";
const severities = process.argv.slice(2);
if (severities.length === 0) {
  console.error("Usage: receive-logs-direct.mjs [info] [warning] [error]");
  process.exit(1);
}

const connection = await amqp.connect(process.env.AMQP_URL ?? "amqp://localhost");
process.once("SIGINT", () => connection.close());
const channel = await connection.createChannel();
await channel.assertExchange(exchange, "direct", { durable: false });
const { queue } = await channel.assertQueue("", { exclusive: true });
for (const severity of severities) await channel.bindQueue(queue, exchange, severity);
await channel.consume(queue, ({ fields, content }) => console.log(` [x] ${fields.routingKey}:'${content}'`), {
  noAck: true,
});
console.log(" [*] Waiting for logs. To exit press CTRL+C");
