/**
 * One worker: the program that `node:cluster` runs for each of `--workers`. It is told by its parent what to be and when
 * to stop, and says whether it serves; signals are the parent's (Ctrl-C goes to the whole group). Where its parent is
 * killed it ends at once, as node:cluster has it. Exit codes as of main.ts. Started by workers.ts.
 */
import process from "node:process";
import { boot, type Gateway } from "./boot.ts";
import { BootError } from "./boot-error.ts";
import { createLog, type Logger } from "./log.ts";
import type { FromWorker, ToWorker } from "./workers.ts";

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});

const stopping = new AbortController();
let reload: () => Promise<void> = async () => {};
const serve = new Promise<Extract<ToWorker, { readonly kind: "serve" }>>((resolve) => {
  process.on("message", (message: ToWorker) => {
    if (message.kind === "serve") resolve(message);
    else if (message.kind === "reload") void reload();
    else stopping.abort();
  });
});
await say({ kind: "ready" });
const { config, name } = await serve;
const log = createLog(config.logLevel).child({ worker: name });
process.exit(await run(log));

async function run(log: Logger): Promise<number> {
  const asked = new Promise<number>((resolve) => {
    stopping.signal.addEventListener("abort", () => resolve(0));
    for (const event of ["uncaughtException", "unhandledRejection"] as const) {
      process.on(event, (error: unknown) => {
        log.fatal({ err: error }, "a bug: stopping");
        resolve(1);
      });
    }
  });
  let gateway: Gateway;
  try {
    gateway = await boot({ ...config, workers: 1 }, log, stopping.signal);
  } catch (error) {
    if (stopping.signal.aborted) return 0;
    if (!(error instanceof BootError)) log.fatal({ err: error }, "a bug: the gateway does not start");
    await say({ kind: "refused", text: error instanceof Error ? error.message : String(error) });
    return 1;
  }
  reload = () => gateway.reload();
  log.info({ pid: process.pid }, `worker ${name} serves`);
  await say({ kind: "serving" });
  const lost = gateway.lost.then((error) => {
    log.fatal(`this worker can serve no more: ${error.message}`);
    return 1;
  });
  const code = await Promise.race([asked, lost]);
  await gateway.stop();
  return code;
}

/** Resolves when it is on its way, so that an exit does not overtake it. */
function say(message: FromWorker): Promise<void> {
  return new Promise((resolve) => {
    process.send?.(message, undefined, undefined, () => resolve());
  });
}
