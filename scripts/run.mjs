/**
 * The one entry of `npm start`, `npm test`, `npm run bench` and `npm run check`: it brings what they need (the pinned
 * pnpm and, where the machine's Node is too old, the pinned Node; the packages; the build; a nats-server) and then runs
 * the one thing asked for. Plain JavaScript for Node >= 18 with no dependency, for it runs before anything is installed.
 * package.json starts it by `exec`: a shell between npm and this process would swallow SIGTERM.
 */
import { existsSync } from "node:fs";
import { check } from "./check.mjs";
import { root, run } from "./child.mjs";
import { natsServer } from "./nats-server.mjs";
import { toolchain } from "./toolchain.mjs";
import { buildPackages, installPackages } from "./workspace.mjs";

const verbs = {
  /** The gateway, with the arguments given: `npm start -- --port 0`. It finds its nats-server itself. */
  async start({ env, node, args }) {
    await buildPackages(env);
    return run(node, ["apps/gateway/bin/amqp-gateway.js", ...args], {
      env: await natsServer(env),
      forwardInterrupt: true,
    });
  },

  /** vitest over the whole house, with the arguments given: `npm test -- packages/codec`. */
  async test({ env, node, args }) {
    await buildPackages(env);
    const vitest = ["node_modules/vitest/vitest.mjs", "run", "--reporter=default", "--reporter=./scripts/totals.ts"];
    return run(node, [...vitest, ...args], { env: await natsServer(env) });
  },

  /** One scenario a file, the same on RabbitMQ: `npm run bench -- <scenario>`. */
  async bench({ env, node, args }) {
    const main = "e2e/bench/main.ts";
    if (!existsSync(new URL(main, root))) throw new Error(`${main} does not exist yet: there is nothing to measure`);
    await buildPackages(env);
    return run(node, ["--conditions=@amqp/source", main, ...args], { env: await natsServer(env) });
  },

  /** What CI refuses besides failing tests: format and lint, types, and packages that would publish broken. */
  async check({ env }) {
    await buildPackages(env);
    return check(env);
  },
};

const [verb = "", ...args] = process.argv.slice(2);
const act = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
if (act === undefined) {
  console.error(`run.mjs: ${JSON.stringify(verb)} is none of ${Object.keys(verbs).join(", ")}`);
  process.exit(2);
}
try {
  const { env, node } = await toolchain();
  await installPackages(env);
  process.exitCode = await act({ env, node, args });
} catch (error) {
  console.error(`npm ${verb === "start" || verb === "test" ? verb : `run ${verb}`}: ${error.message}`);
  process.exitCode = error.exitCode ?? 1;
}
