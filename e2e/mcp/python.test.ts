/**
 * The official Python clients of two major versions, over both transports and to servers of both.
 */
import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ROOT } from "../support/build.ts";
import { type EverythingServer, startEverything } from "../support/mcp/everything.ts";
import { mcpKeyYaml, mcpProviderYaml } from "../support/mcp/resources.ts";
import { rawKey } from "../support/resources.ts";
import { Stack } from "../support/stack.ts";

const run = promisify(execFile);
const TRANSPORTS = ["http", "sse"] as const;

let stack: Stack;
let servers: Readonly<Record<(typeof TRANSPORTS)[number], EverythingServer>>;

beforeAll(async () => {
  servers = { http: await startEverything("streamableHttp"), sse: await startEverything("sse") };
  const files: Record<string, string> = {};
  for (const transport of TRANSPORTS) {
    const { url } = servers[transport];
    const spec = ["policy: {mcp: {deniedTools: [get-env]}}"];
    files[`${transport}.yaml`] = mcpProviderYaml(transport, { url, transport, spec });
    files[`${transport}-key.yaml`] = mcpKeyYaml(`to-${transport}`, transport);
  }
  stack = await Stack.start({ files });
});

afterAll(async () => {
  await stack?.stop();
  for (const server of Object.values(servers ?? {})) await server.stop();
});

interface Step {
  readonly name: string;
  readonly value?: unknown;
  readonly error?: string;
}

describe.each(["present", "next"])("the %s version", (version) => {
  test.each(
    TRANSPORTS.flatMap((transport) => TRANSPORTS.map((other) => [transport, other] as const)),
  )(
    "over %s, server over %s",
    async (transport, upstream) => {
      const url = `${stack.externalUrl}/ext/mcp/${upstream}${transport === "sse" ? "/sse" : ""}`;
      const { stdout } = await run(
        "python3",
        [
          path.join(ROOT, "e2e/support/clients/mcp_python.py"),
          transport,
          url,
          rawKey(`to-${upstream}`),
        ],
        { env: { PATH: process.env["PATH"], PYTHONPATH: path.join(ROOT, `.venv/mcp-${version}`) } },
      );
      const steps = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Step);
      const of = (name: string): Step | undefined => steps.find((step) => step.name === name);
      expect(of("list")?.value).toContain("echo");
      expect(of("list")?.value).not.toContain("get-env");
      expect(of("call")?.value).toContain("hello");
      expect(of("denied")?.error).toContain("The tool get-env is not allowed by the policy");
      expect(of("after")?.value).toContain("still here");
      expect(of("sampling")?.value).toContain("sampled words");
      expect(of("elicitation")?.value).toMatch(/Ada|accept/);
      expect(of("roots")?.value).toContain("file:///work");
      expect((of("progress")?.value as number[] | undefined)?.slice(0, 3)).toEqual([1, 2, 3]);
      expect(of("cancel")?.value).toContain("after");
    },
    60_000,
  );
});
