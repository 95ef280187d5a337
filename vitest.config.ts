import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    projects: [
      { test: { name: "unit", include: ["src/**/*.test.ts", "fuzz/**/*.test.ts"], sequence: { groupOrder: 0 } } },
      {
        test: {
          name: "e2e",
          include: ["e2e/**/*.test.ts"],
          globalSetup: ["e2e/support/build.ts"],
          // Each file runs whole stacks; their figures would disturb one another.
          fileParallelism: false,
          testTimeout: 15_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
