// What nats-server alone does with calls over queues that come and go, without any gateway: clients that make a consumer,
// call, are answered and delete it again, on a stream like ours. A message that was confirmed and never came is lost by the
// bus. This is why a message always stands in our log (packages/broker/src/nats/keeper.ts); a later nats-server may not need it.
//   node e2e/soak/bus.ts [--seconds 60] [--callers 24] [--burners 4] [--standing]
// `--burners`: processes that keep the machine busy, without which little is lost; `--standing`: as our log has it. Needs
// NATS_SERVER_BIN. Exit code 1 where something was lost.
import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Msg } from "@nats-io/nats-core";
import { connect } from "@nats-io/transport-node";
import { startNats } from "../harness/nats-server.ts";
import { own, releaseAll } from "../harness/owned.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    callers: { type: "string", default: "24" },
    burners: { type: "string", default: "4" },
    standing: { type: "boolean", default: false },
  },
});
const LOST = 8_000;

const nats = await startNats();
const bus = await connect({ servers: nats.url });
const publishing = await connect({ servers: nats.url });
const burners: ChildProcess[] = [];
let [calls, lost, serial] = [0, 0, 0];

async function ask(verb: string, body: object | string): Promise<void> {
  const payload = typeof body === "string" ? body : JSON.stringify(body);
  const { error } = (await bus.request(`$JS.API.${verb}`, payload, { timeout: 10_000 })).json<{ error?: object }>();
  if (error !== undefined) throw new Error(`${verb}: ${JSON.stringify(error)}`);
}

async function make(name: string): Promise<void> {
  const config = {
    name,
    durable_name: name,
    filter_subject: `t.${name}`,
    ack_policy: "explicit",
    deliver_policy: "new",
    max_ack_pending: -1,
  };
  await ask(`CONSUMER.CREATE.T.${name}`, { stream_name: "T", config, action: "create" });
}

/** Resolves when it is stored. */
async function publish(name: string, text: string): Promise<void> {
  const { error } = (await publishing.request(`t.${name}`, text, { timeout: 10_000 })).json<{ error?: object }>();
  if (error !== undefined) throw new Error(`publish: ${JSON.stringify(error)}`);
}

/** Pulls and acknowledges; returns how to stop. */
function pump(name: string, took: (text: string) => void): () => void {
  const inbox = `_INBOX.pump.${name}`;
  const batch = 20;
  let owed = 0;
  const pull = (): void => {
    owed = batch;
    bus.publish(`$JS.API.CONSUMER.MSG.NEXT.T.${name}`, JSON.stringify({ batch, expires: 2_500_000_000 }), {
      reply: inbox,
    });
  };
  const callback = (_: Error | null, message: Msg): void => {
    const status = message.headers?.code ?? 0;
    if (status === 0) {
      message.respond("+ACK");
      took(message.string());
      owed--;
    } else if (status === 408) owed = 0;
    if (owed === 0) pull();
  };
  const subscription = bus.subscribe(inbox, { callback });
  pull();
  return () => subscription.unsubscribe();
}

async function caller(end: number): Promise<void> {
  while (Date.now() < end) {
    const name = `c${++serial}`;
    await make(name);
    let answered = (_: string): void => undefined;
    const stop = pump(name, (text) => answered(text));
    for (let left = 1 + Math.floor(Math.random() * 10); left > 0; left--) {
      const call = `${name} ${left}`;
      const answer = new Promise<true>((resolve) => {
        answered = (text) => {
          if (text === call) resolve(true);
        };
      });
      await publish("rpc", call);
      const timer = new AbortController();
      const late = sleep(LOST, false as const, { signal: timer.signal }).catch(() => false as const);
      if (!(await Promise.race([answer, late]))) lost++;
      timer.abort();
      calls++;
    }
    stop();
    await ask(`CONSUMER.DELETE.T.${name}`, "");
    await sleep(Math.random() * 50);
  }
}

try {
  const stream = { name: "T", subjects: ["t.>"], retention: "interest", storage: "file" };
  await ask("STREAM.CREATE.T", stream);
  await make("rpc");
  pump("rpc", (call) => void publish(call.slice(0, call.indexOf(" ")), call).catch(() => undefined));
  if (values.standing) {
    await make("standing");
    await publish("standing", "");
  }
  for (let n = Number(values.burners); n > 0; n--) {
    const burner = spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" });
    own(burner);
    burners.push(burner);
  }
  const end = Date.now() + Number(values.seconds) * 1_000;
  await Promise.all(Array.from({ length: Number(values.callers) }, () => caller(end)));
  console.log(`${calls} calls over ${serial} consumers, ${lost} lost`);
  if (lost > 0) process.exitCode = 1;
} finally {
  for (const burner of burners) burner.kill("SIGKILL");
  await Promise.all([bus.close(), publishing.close()]);
  await releaseAll();
}
