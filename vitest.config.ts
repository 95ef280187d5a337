import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "fuzz/**/*.test.ts", "scripts/**/*.test.ts"],
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
          testTimeout: 15_000,
          hookTimeout: 60_000,
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
          testTimeout: 120_000,
          hookTimeout: 180_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
