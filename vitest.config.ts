import { defineConfig } from "vitest/config";

// Tests read the packages' sources through the "@amqp/source" condition: no build is needed before them.
const conditions = ["node", "@amqp/source"];

export default defineConfig({
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    // Most of a test's time is waiting for processes: two files at once also where there are only two cores.
    maxWorkers: 2,
    // Processes are killed and elections are waited for: in CI what failed is run once more, and the log shows it.
    retry: process.env.CI === undefined ? 0 : 1,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["packages/*/test/**/*.test.ts", "apps/*/test/**/*.test.ts", "scripts/test/**/*.test.ts"],
          testTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: { name: "e2e", include: ["e2e/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
      },
    ],
  },
});
