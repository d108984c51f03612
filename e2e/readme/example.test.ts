/** README's example works as pasted: it is run as it stands there, against a gateway. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { startGateway } from "../harness/gateway.ts";

const e2e = fileURLToPath(new URL("..", import.meta.url));

test("prints the two orders that the binding takes, and ends", async () => {
  const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");
  const example = /```js\n([\s\S]*?)```/.exec(readme)?.[1];
  if (example === undefined) throw new Error("README.md has no example");
  const gateway = await startGateway();
  // Beneath e2e, where amqplib is installed.
  const folder = await mkdtemp(`${e2e}/.readme-`);
  try {
    const program = `${folder}/hello.mjs`;
    await writeFile(program, example.replace("amqp://127.0.0.1", gateway.url));
    const { stdout } = await promisify(execFile)(process.execPath, [program], { timeout: 20_000 });
    expect(stdout).toBe("us.paid order 1\neu.paid order 2\n");
  } finally {
    await rm(folder, { recursive: true, force: true });
    await gateway.stop();
  }
});
