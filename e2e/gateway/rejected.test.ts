/** A configuration that Envoy rejects shows on the object that it is of, and on no other. */
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import { type Ran, Stack, svc } from "../support/stack.ts";

const RESOURCES = `
apiVersion: svc.io/v1
kind: ModelProvider
metadata: {name: mock}
spec: {provider: mock}
---
apiVersion: svc.io/v1
kind: Agent
metadata: {name: app}
spec: {models: ["mock/*"]}
`;

const provider = (scheme: string): string => `
apiVersion: svc.io/v1
kind: ModelProvider
metadata: {name: remote}
spec: {provider: openai-compatible, baseURL: "${scheme}://127.0.0.1:9/v1"}
`;

interface Shown {
  readonly status: {
    readonly ready: boolean;
    readonly conditions: readonly { readonly type: string; readonly status: string }[];
  };
}

let dir: string;
let stack: Stack;

beforeAll(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-e2e-ca-"));
  const ca = path.join(dir, "ca.pem");
  writeFileSync(ca, "no certificate");
  stack = await Stack.start({ files: { "all.yaml": RESOURCES }, env: { SVC_CA_FILE: ca } });
});

afterAll(async () => {
  await stack?.stop();
  rmSync(dir, { recursive: true, force: true });
});

function run(...args: string[]): Promise<Ran> {
  return svc(args, { SVC_STATE_DIR: stack.stateDir });
}

async function applied(scheme: string): Promise<Ran> {
  const file = path.join(dir, "remote.yaml");
  writeFileSync(file, provider(scheme));
  return run("apply", "-f", file);
}

/** `<type>=<status>` of each condition. */
async function conditions(name: string): Promise<string[]> {
  const { stdout } = await run("get", "model-provider", name, "-o", "json");
  const { status } = JSON.parse(stdout) as Shown;
  return status.conditions.map((condition) => `${condition.type}=${condition.status}`);
}

async function call(): Promise<number> {
  const response = await fetch(`${stack.baseUrl}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${await stack.token("app")}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ model: "mock/echo", messages: [{ role: "user", content: "Hello" }] }),
  });
  await response.arrayBuffer();
  return response.status;
}

test("a ModelProvider that Envoy rejects says so, and the others serve", async () => {
  expect(await conditions("mock")).toEqual(["Ready=True", "Programmed=True"]);
  // Its certificates would be verified against a file that contains none.
  const { stdout } = await applied("https");
  expect(stdout).toMatch(
    /^model-provider\/remote created: not in use: EnvoyRejected: Envoy rejected its clusters: .*upstream\/default\/remote@/,
  );
  expect((await run("get", "model-providers")).stdout).toMatch(
    /^remote +openai-compatible +no +EnvoyRejected /m,
  );
  expect((await run("status")).stdout).toMatch(
    /^ModelProvider +default\/remote +no +EnvoyRejected +Envoy rejected its clusters: /m,
  );
  expect(await conditions("remote")).toEqual(["Ready=False", "Programmed=False"]);
  expect(await conditions("mock")).toEqual(["Ready=True", "Programmed=True"]);
  expect(await call()).toBe(200);
});

test("a corrected one is in use", async () => {
  expect((await applied("http")).stdout).toBe("model-provider/remote configured\n");
  expect(await conditions("remote")).toEqual(["Ready=True", "Programmed=True"]);
  expect(await call()).toBe(200);
});
