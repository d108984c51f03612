/**
 * A vitest reporter that closes the run with one plain line, `N passed, N failed, N skipped`, for CI's log and for who
 * greps it. A run that found no test, or a file that could not even be loaded, counts as failed. Used by run.mjs.
 */
import type { Reporter, TestModule } from "vitest/node";

export default class Totals implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandled.length, skipped: 0, pending: 0 };
    for (const module of modules) {
      count.failed += module.errors().length;
      for (const test of module.children.allTests()) count[test.result().state] += 1;
    }
    if (count.passed + count.failed + count.skipped === 0) process.exitCode = 1;
    // In the next turn, after the other reporters' own last lines.
    setImmediate(() => console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`));
  }
}
