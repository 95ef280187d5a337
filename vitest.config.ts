import { defineConfig } from "vitest/config";

// Limits of time end what hangs, and say what it waited for; none of them is an expectation. They
// leave room for a machine that is busy with other work. SVC_TEST_PATIENCE_MS is the limit of
// `until` (e2e/support/wait.ts).
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "fuzz/**/*.test.ts", "scripts/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: "e2e",
          include: ["e2e/**/*.test.ts"],
          exclude: ["e2e/cluster/**"],
          globalSetup: ["e2e/support/build.ts"],
          // Each file runs whole stacks; their figures would disturb one another.
          fileParallelism: false,
          env: { SVC_TEST_PATIENCE_MS: "60000" },
          testTimeout: 180_000,
          hookTimeout: 240_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          name: "cluster",
          include: ["e2e/cluster/**/*.test.ts"],
          globalSetup: ["e2e/support/cluster/setup.ts"],
          setupFiles: ["e2e/support/cluster/fresh.ts"],
          // They share one node.
          fileParallelism: false,
          env: { SVC_TEST_PATIENCE_MS: "120000" },
          testTimeout: 300_000,
          hookTimeout: 400_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
