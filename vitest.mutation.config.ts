import { defineConfig } from "vitest/config";

/**
 * The unit tests that mutants meet: without those that read the whole repository, and those that
 * take long and say nothing that the others do not say.
 */
export default defineConfig({
  test: {
    // What is instrumented is slower, and Stryker has a limit of its own.
    testTimeout: 30_000,
    include: ["src/**/*.test.ts"],
    exclude: [
      "src/*.test.ts",
      "src/audit/writer/torn.test.ts",
      // The command is the only test of what reads the audit chain for people.
      "src/cli/!(audit-command).test.ts",
      "src/envoy/config/*.golden.test.ts",
      // A real client waits long for what a mutant does not send; flow-control.test.ts counts it.
      "src/envoy/grpc/connection.test.ts",
      "src/interception/**",
      "src/run/**",
      "src/up/**",
    ],
  },
});
