/**
 * The client scenarios of the official conformance suite, with the official SDK: straight at the
 * suite's servers, and as an agent through its sidecar. No check that passes straight fails there.
 * The suite's scenarios of OAuth are left out: an agent has no credential to obtain, and the
 * sidecar removes those that it sends.
 */
import { execFile } from "node:child_process";
import http, { type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ROOT } from "../support/build.ts";
import { Machine } from "../support/clients/machine.ts";
import { type ConformanceResult, runConformance } from "../support/mcp/conformance.ts";
import { reverseProxy } from "../support/mcp/reverse-proxy.ts";

const run = promisify(execFile);
const HOST = "mcp.example.com";

interface Scenario {
  readonly scenario: string;
  readonly revision: string;
  readonly context: string;
  /** Of the suite's server. */
  readonly url: string;
}

let machine: Machine;
let control: http.Server;
/** Where the client runs. */
let runClient: (scenario: Scenario) => Promise<void>;
let target = new URL("http://127.0.0.1");

const argsOf = ({ scenario, revision, context }: Scenario): readonly string[] => [
  scenario,
  revision,
  context,
];

async function straight(scenario: Scenario): Promise<void> {
  const program = path.join(ROOT, "e2e/support/clients/mcp-conformance.mjs");
  await run(process.execPath, [program, ...argsOf(scenario), scenario.url]);
}

async function mediated(scenario: Scenario): Promise<void> {
  target = new URL(scenario.url);
  const program = machine.client("mcp-conformance.mjs");
  const url = `https://${HOST}/mcp`;
  const { code, stderr } = await machine.run([machine.node, program, ...argsOf(scenario), url], {
    agent: "coder",
  });
  if (code !== 0) throw new Error(stderr);
}

beforeAll(async () => {
  machine = await Machine.start({
    hosts: [HOST],
    resources: [
      {
        apiVersion: "svc.io/v1",
        kind: "Provider",
        metadata: { name: "suite" },
        spec: {
          type: "mcp",
          mcp: { url: `https://${HOST}/mcp` },
          policy: { mcp: { deniedTools: ["none"], deniedPrompts: ["none"] } },
        },
      },
      {
        apiVersion: "svc.io/v1",
        kind: "Agent",
        metadata: { name: "coder" },
        spec: { models: [], providers: ["suite"] },
      },
    ],
  });
  const forward = reverseProxy(() => Number(target.port), []);
  machine.outside.streaming = (request, response) => {
    request.url = target.pathname;
    forward(request, response);
  };
  control = http.createServer((request: IncomingMessage, response) => {
    text(request)
      .then((body) => runClient(JSON.parse(body) as Scenario))
      .then(() => response.end())
      .catch((error: unknown) => {
        response.writeHead(500).end(String(error));
      });
  });
  await new Promise<void>((resolve) => control.listen(0, "127.0.0.1", resolve));
}, 300_000);

afterAll(async () => {
  control?.close();
  await machine?.stop();
});

async function suite(scenario: string, revision: string): Promise<ConformanceResult> {
  const { port } = control.address() as AddressInfo;
  const program = path.join(ROOT, "e2e/support/mcp/run-client.mjs");
  const command = `${process.execPath} ${program} http://127.0.0.1:${port}/`;
  const args = ["client", "--command", command, "--scenario", scenario];
  return runConformance([...args, "--spec-version", revision]);
}

const passed = (results: ConformanceResult): string[] =>
  [...results].filter(([, status]) => status === "SUCCESS").map(([check]) => check);

test.each([
  ["initialize", "2025-06-18"],
  ["initialize", "2025-11-25"],
  ["tools_call", "2025-06-18"],
  ["tools_call", "2025-11-25"],
  ["elicitation-sep1034-client-defaults", "2025-11-25"],
  ["sse-retry", "2025-11-25"],
  ["json-schema-2020-12-preservation", "2025-11-25"],
  ["tools_call", "2026-07-28"],
  ["request-metadata", "2026-07-28"],
  ["sep-2322-client-request-state", "2026-07-28"],
  ["http-standard-headers", "2026-07-28"],
  ["http-custom-headers", "2026-07-28"],
  ["http-invalid-tool-headers", "2026-07-28"],
  ["json-schema-ref-no-deref", "2026-07-28"],
  ["json-schema-2020-12-preservation", "2026-07-28"],
])(
  "%s, revision %s",
  async (scenario, revision) => {
    runClient = straight;
    const direct = await suite(scenario, revision);
    runClient = mediated;
    const results = await suite(scenario, revision);
    expect(passed(direct).length).toBeGreaterThan(0);
    expect(passed(direct).filter((check) => results.get(check) !== "SUCCESS")).toEqual([]);
  },
  60_000,
);
