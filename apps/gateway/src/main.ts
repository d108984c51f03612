/**
 * The program: reads what it is told, boots, says where it serves, and stops when it is asked to. Exit codes: 0 after a
 * stop, 1 where it could not start or something broke. Started by bin/amqp-gateway.js.
 */
import { homedir } from "node:os";
import process from "node:process";
import { boot, type Gateway } from "./boot.ts";
import { BootError } from "./boot-error.ts";
import { type Config, parseConfig } from "./config.ts";
import { createLog, type Logger } from "./log.ts";
import { readVersion } from "./version.ts";

/** A stop that takes longer than this is given up, in milliseconds: orchestrators kill at 30 s. */
const PATIENCE = 25_000;

async function run(config: Config): Promise<number> {
  const log = createLog(config.logLevel);
  for (const warning of config.warnings) log.warn(warning);
  const stopping = new AbortController();
  let gateway: Gateway | undefined;
  const asked = new Promise<number>((resolve) => {
    // The listeners stay: a second Ctrl-C must not kill the drain that the first one began.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => {
        // With a certificate this is a daemon's SIGHUP; without one there is nothing to read again: a terminal went.
        if (signal === "SIGHUP" && config.tls !== undefined) {
          log.info(`${signal}: reading the certificate again`);
          void gateway?.reload();
          return;
        }
        if (!stopping.signal.aborted) log.info(`${signal}: stopping`);
        stopping.abort();
        resolve(0);
      });
    }
    for (const event of ["uncaughtException", "unhandledRejection"] as const) {
      process.on(event, (error: unknown) => {
        log.fatal({ err: error }, "a bug: stopping");
        stopping.abort();
        resolve(1);
      });
    }
  });
  try {
    gateway = await boot(config, log, stopping.signal);
  } catch (error) {
    if (stopping.signal.aborted) return asked;
    if (error instanceof BootError) log.fatal(error.message);
    else log.fatal({ err: error }, "a bug: the gateway does not start");
    return 1;
  }
  announce(gateway, log);
  const lost = gateway.lost.then((error) => {
    log.fatal(`the gateway can serve no more: ${error.message}: start it again`);
    return 1;
  });
  const code = await Promise.race([asked, lost]);
  const late = setTimeout(() => {
    log.fatal(`the stop takes longer than ${PATIENCE} ms: giving up`);
    process.exit(1);
  }, PATIENCE);
  await gateway.stop();
  clearTimeout(late);
  log.info("stopped");
  return code;
}

/** The one line that says it serves; programs wait for it and read its fields. */
function announce({ host, port, tlsPort, bus, embedded, workers }: Gateway, log: Logger): void {
  const address = host.includes(":") ? `[${host}]` : host;
  const where = [
    ...(port === undefined ? [] : [`${address}:${port}`]),
    ...(tlsPort === undefined ? [] : [`${address}:${tlsPort} (TLS)`]),
  ].join(" and ");
  const fields = { host, port, tlsPort, bus, embedded, workers };
  const by = workers > 1 ? `, ${workers} workers` : "";
  log.info(fields, `serving AMQP 0-9-1 on ${where}, bus ${bus.join(", ")}${embedded ? " (embedded)" : ""}${by}`);
}

const command = parseConfig(process.argv.slice(2), { env: process.env, platform: process.platform, home: homedir() });
switch (command.kind) {
  case "help":
    process.stdout.write(command.text);
    break;
  case "version":
    process.stdout.write(`${readVersion()}\n`);
    break;
  case "error":
    process.stderr.write(`amqp-gateway: ${command.text}\n`);
    process.exitCode = 1;
    break;
  case "run":
    process.exit(await run(command.config));
}
