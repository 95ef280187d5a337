/**
 * Coding agents, unmodified and without a vendor's key: each finishes a task of ten tool turns at
 * each kind of provider, which the mock model plays in the vendor's own form.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AGENTS, runAgent } from "../support/agents/run-agent.ts";
import { agentYaml } from "../support/resources.ts";
import { freePort, Stack } from "../support/stack.ts";

const TURNS = Array.from({ length: 10 }, (_, index) => `turn ${index + 1}`);
const PROMPT = "Write ten turns into turns.txt";

/** Each agent's own tool for commands. */
const SCRIPT = [
  {
    when: PROMPT,
    steps: [
      ...TURNS.map((turn) => {
        const command = `echo ${turn} >> turns.txt`;
        const description = "Append a line";
        return {
          text: `Writing ${turn}.`,
          calls: [
            {
              bash: { command, description },
              run_shell_command: { command, description },
              exec_command: { cmd: command },
              shell_command: { command },
              shell: { command: ["bash", "-lc", command] },
            },
          ],
        };
      }),
      { text: "All ten turns are written." },
    ],
  },
];

/** Provider kinds, with the path of their API at the mock model. */
const KINDS: Readonly<Record<string, string>> = {
  mock: "",
  openai: "/v1",
  "openai-compatible": "/v1",
  anthropic: "/v1",
  gemini: "/v1beta",
};

function providersYaml(port: number): string {
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "any" } };
  const objects = Object.entries(KINDS).map(([kind, base]) => ({
    apiVersion: "svc.io/v1",
    kind: "ModelProvider",
    metadata: { name: `at-${kind}` },
    spec:
      kind === "mock"
        ? { provider: kind }
        : {
            provider: kind,
            baseURL: `http://127.0.0.1:${port}${base}`,
            apiKeySecretRef: { name: "any", key: "key" },
          },
  }));
  return [{ ...secret, stringData: { key: "sk-none" } }, ...objects]
    .map((object) => JSON.stringify(object))
    .join("\n---\n");
}

let stack: Stack;
let token: string;
let dir: string;

beforeAll(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-agents-"));
  const script = path.join(dir, "script.yaml");
  writeFileSync(script, JSON.stringify(SCRIPT));
  const port = await freePort();
  const models = Object.keys(KINDS).map((kind) => `at-${kind}/*`);
  stack = await Stack.start({
    files: { "providers.yaml": providersYaml(port), "agent.yaml": agentYaml("coder", models) },
    args: ["--mock-port", String(port), "--mock-script", script],
  });
  token = await stack.token("coder");
});

afterAll(async () => {
  await stack.stop();
  rmSync(dir, { recursive: true });
});

describe.each(Object.keys(AGENTS))("%s", (agent) => {
  test.each(Object.keys(KINDS))(
    "finishes ten tool turns at a provider of kind %s",
    { timeout: 300_000 },
    async (kind) => {
      const task = { baseUrl: stack.baseUrl, token, model: `at-${kind}/m`, prompt: PROMPT };
      const { code, output, turns } = await runAgent(agent, task);
      expect(turns, output).toBe(TURNS.map((turn) => `${turn}\n`).join(""));
      expect(output).toContain("All ten turns are written.");
      expect(code, output).toBe(0);
    },
  );
});
