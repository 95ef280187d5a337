/**
 * The server scenarios of the official conformance suite, straight at a server and through the
 * gateway, with a policy in force: no check that passes straight fails through the gateway.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type ConformanceResult,
  type ConformanceServer,
  runConformance,
  startConformanceServer,
} from "../support/mcp/conformance.ts";
import { type KeyShim, startKeyShim } from "../support/mcp/key-shim.ts";
import { mcpKeyYaml, mcpProviderYaml } from "../support/mcp/resources.ts";
import { rawKey } from "../support/resources.ts";
import { Stack } from "../support/stack.ts";

/** Policies for every kind of items, so that every list is read and filtered. */
const POLICY =
  "policy: {mcp: {deniedTools: [none], deniedPrompts: [none], deniedResources: ['none://*']}}";

let stack: Stack;
let server: ConformanceServer;
let shim: KeyShim;

beforeAll(async () => {
  server = await startConformanceServer();
  stack = await Stack.start({
    files: {
      "server.yaml": mcpProviderYaml("server", { url: server.url, spec: [POLICY] }),
      "key.yaml": mcpKeyYaml("laptop", "server"),
    },
  });
  shim = await startKeyShim(`${stack.externalUrl}/ext/mcp/server`, rawKey("laptop"));
});

afterAll(async () => {
  await shim?.stop();
  await stack?.stop();
  await server?.stop();
});

const passed = (results: ConformanceResult): string[] =>
  [...results].filter(([, status]) => status === "SUCCESS").map(([check]) => check);

/** Passed checks of a server that has everything but the extension for tasks. */
test.each([
  ["2025-03-26", ["--suite", "all", "--spec-version", "2025-03-26"], 3],
  ["2025-06-18", ["--suite", "all", "--spec-version", "2025-06-18"], 56],
  ["2025-11-25", ["--requirements", "2025-11-25"], 84],
  ["2026-07-28", ["--requirements", "2026-07-28"], 160],
])(
  "revision %s",
  async (_, args, atLeast) => {
    const straight = await runConformance(["server", "--url", server.url, ...args]);
    const mediated = await runConformance(["server", "--url", shim.url, ...args]);
    expect(passed(straight).length).toBeGreaterThanOrEqual(atLeast);
    expect(passed(straight).filter((check) => mediated.get(check) !== "SUCCESS")).toEqual([]);
    expect([...mediated.keys()].sort()).toEqual([...straight.keys()].sort());
  },
  180_000,
);
