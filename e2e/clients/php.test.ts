// php-amqplib, unchanged, as Debian packages it: its checks are in php/.
import { expect, it } from "vitest";
import { missing, runScript } from "./script.ts";

const PHP = "/usr/bin/php";
const reason = missing("php-amqplib", [PHP, "-r", "exit((include 'PhpAmqpLib/autoload.php') ? 0 : 1);"]);

it("php-amqplib, logging in by AMQPLAIN, does what its users do", async ({ skip }) => {
  if (reason !== undefined) skip(reason);
  const { checks, code, stderr } = await runScript(PHP, "php/php_amqplib_checks.php");
  expect(checks.filter(({ ok }) => !ok)).toEqual([]);
  expect(checks.length, stderr).toBe(8);
  expect(code, stderr).toBe(0);
}, 90_000);
