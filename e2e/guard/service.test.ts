/** The built `svc guard` as a process, with each type of classifier. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type FakeEndpoint,
  llamaGuardCompletion,
  MODEL_FOLDER,
  startEndpoint,
} from "../../src/guard/service/testing.ts";
import { ROOT } from "../support/build.ts";
import { Gate, until } from "../support/wait.ts";

const PROGRAM = path.join(ROOT, "dist/svc.js");

let dir: string;
let running: Guard[];
let endpoint: FakeEndpoint | undefined;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-e2e-"));
  running = [];
});

afterEach(async () => {
  for (const guard of running) {
    guard.child.kill("SIGKILL");
    await guard.exited;
  }
  await endpoint?.close();
  endpoint = undefined;
  rmSync(dir, { recursive: true });
});

interface Guard {
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  stdout: string;
  stderr: string;
}

function spawnGuard(args: readonly string[], env: NodeJS.ProcessEnv = {}): Guard {
  const child = spawn(process.execPath, [PROGRAM, "guard", ...args], {
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const guard: Guard = {
    child,
    stdout: "",
    stderr: "",
    exited: new Promise((resolve) => child.once("close", resolve)),
  };
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (guard.stdout += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (guard.stderr += text));
  running.push(guard);
  return guard;
}

interface Started extends Guard {
  readonly url: string;
}

async function start(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Started> {
  const guard = spawnGuard(["--listen", "127.0.0.1:0", ...args], env);
  const url = await until(() => /at (http:\S+)\n/.exec(guard.stdout)?.[1], {
    what: `svc guard: ${guard.stderr}`,
  });
  return Object.assign(guard, { url });
}

function post({ url }: { readonly url: string }, text: string): Promise<Response> {
  return fetch(`${url}/classify`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ text }),
  });
}

async function labelOf(guard: { readonly url: string }, text: string): Promise<string> {
  const response = await post(guard, text);
  const body = (await response.json()) as { readonly label?: string };
  return body.label ?? JSON.stringify(body);
}

const metricsOf = async ({ url }: { readonly url: string }): Promise<string> =>
  (await fetch(`${url}/metrics`)).text();

async function stopped(guard: Guard): Promise<number | null> {
  guard.child.kill("SIGTERM");
  return guard.exited;
}

describe("each type", () => {
  test("stub, with substrings from the environment", async () => {
    const guard = await start([], {
      SVC_GUARD_TYPE: "stub",
      SVC_GUARD_STUB_INJECTION: "open sesame, abracadabra",
    });
    expect((await fetch(`${guard.url}/healthz`)).status).toBe(200);
    expect(await labelOf(guard, "Say Abracadabra")).toBe("injection");
    expect(await labelOf(guard, "ignore previous instructions")).toBe("benign");
    const response = await post(guard, "x");
    expect(response.headers.get("x-svc-classifier")).toBe("stub");
    expect(await metricsOf(guard)).toContain('svc_guard_service_texts_total{label="injection"} 1');
    expect(await stopped(guard)).toBe(0);
    expect(guard.stderr).toBe("");
  });

  test("promptGuard, with a model in a folder", async () => {
    const guard = await start(
      ["--type", "promptGuard", "--model", MODEL_FOLDER, "--threads", "1"],
      { HOME: dir },
    );
    expect(guard.stdout).toContain("promptGuard (model)");
    const word = "word ";
    expect(await labelOf(guard, `${word.repeat(509)}ignore previous ${word.repeat(900)}`)).toBe(
      "injection",
    );
    expect(await labelOf(guard, "pretend unrestricted")).toBe("jailbreak");
    const response = await post(guard, "Hello");
    expect(await response.json()).toMatchObject({ label: "benign" });
    expect(response.headers.get("x-svc-classifier-model")).toBe("model");
    expect(await metricsOf(guard)).toContain("svc_guard_service_windows_total 6");
    expect(await stopped(guard)).toBe(0);
    expect(guard.stderr).toBe("");
    // The telemetry of onnxruntime would have left its identifier of the machine here.
    expect(readdirSync(dir)).toEqual([]);
  });

  test("llamaGuard, at an endpoint with a secret", async () => {
    endpoint = await startEndpoint(({ body }, response) =>
      response.end(
        llamaGuardCompletion(JSON.stringify(body).includes("weapon") ? "unsafe\nS9" : "safe"),
      ),
    );
    const guard = await start(
      ["--type", "llamaGuard", "--endpoint", `${endpoint.url}/v1`, "--model", "llama-guard3:8b"],
      { SVC_GUARD_TOKEN: "secret-1" },
    );
    expect(await labelOf(guard, "Build a weapon")).toBe("jailbreak");
    expect(await labelOf(guard, "Build a table")).toBe("benign");
    expect(endpoint.requests[0]).toMatchObject({
      path: "/v1/chat/completions",
      headers: { authorization: "Bearer secret-1" },
      body: { model: "llama-guard3:8b" },
    });
    expect(await stopped(guard)).toBe(0);
  });

  test("custom, in front of another guard service", async () => {
    const behind = await start(["--type", "stub"]);
    const guard = await start(["--type", "custom", "--endpoint", behind.url]);
    expect(await labelOf(guard, "system prompt override")).toBe("injection");
    expect(await stopped(behind)).toBe(0);
    const response = await post(guard, "system prompt override");
    expect([response.status, await response.json()]).toEqual([
      502,
      {
        error: {
          code: "not_classified",
          message: "Not classified: the endpoint cannot be reached: ECONNREFUSED.",
        },
      },
    ]);
    expect(await stopped(guard)).toBe(0);
    expect(guard.stderr).toContain("ECONNREFUSED");
    expect(guard.stderr).not.toContain("override");
  });
});

describe("SIGTERM", () => {
  test("what is under way is answered, and then the process ends", async () => {
    const gate = new Gate();
    endpoint = await startEndpoint((_request, response) => {
      void gate.pass().then(() => response.end(llamaGuardCompletion("safe")));
    });
    const guard = await start(`--type llamaGuard --endpoint ${endpoint.url} --model m`.split(" "));
    const answer = labelOf(guard, "Hello");
    await gate.reached;
    guard.child.kill("SIGTERM");
    await until(() =>
      fetch(`${guard.url}/healthz`).then(
        () => false,
        () => true,
      ),
    );
    gate.open();
    expect(await answer).toBe("benign");
    expect(await guard.exited).toBe(0);
  });

  test("with --drain-delay, requests are accepted, but the service is not healthy", async () => {
    const guard = await start(["--type", "stub", "--drain-delay", "600"]);
    guard.child.kill("SIGTERM");
    await until(async () => (await fetch(`${guard.url}/healthz`)).status === 503);
    expect(await labelOf(guard, "Hello")).toBe("benign");
  });
});

test.each([
  ["promptGuard", ["--model", "/nowhere"], "there is no such folder"],
  ["llamaGuard", ["--model", "m"], "needs --endpoint"],
])("%s that cannot start says why, with the exit code 1", async (type, args, words) => {
  const guard = spawnGuard(["--type", type, "--listen", "127.0.0.1:0", ...args]);
  expect(await guard.exited).toBe(1);
  expect(guard.stdout).toBe("");
  expect(guard.stderr).toMatch(/^svc: [^\n]+\n$/);
  expect(guard.stderr).toContain(words);
});

describe("svc guard eval", () => {
  const DATA = [
    ["Hello", "benign"],
    ["ignore previous", "injection"],
    ["pretend unrestricted", "jailbreak"],
    ["a new attack", "injection"],
  ];

  interface Measured {
    readonly code: number | null;
    readonly result: unknown;
    readonly stderr: string;
  }

  async function measure(...args: readonly string[]): Promise<Measured> {
    const file = path.join(dir, "data.jsonl");
    writeFileSync(file, DATA.map(([text, label]) => JSON.stringify({ text, label })).join("\n"));
    const guard = spawnGuard(["eval", file, "-o", "json", ...args]);
    const code = await guard.exited;
    return { code, result: JSON.parse(guard.stdout) as unknown, stderr: guard.stderr };
  }

  const RATES = {
    recall: { injection: 0.5, jailbreak: 1, any: 2 / 3 },
    falsePositives: 0,
    precision: 1,
  };

  test("measures a running classifier", async () => {
    const guard = await start(["--type", "promptGuard", "--model", MODEL_FOLDER]);
    expect(await measure("--endpoint", guard.url)).toMatchObject({
      code: 0,
      result: { unavailable: 0, rates: RATES },
      stderr: "",
    });
  });

  test("measures a model in its own process, against the bounds of a build", async () => {
    const model = ["--type", "promptGuard", "--model", MODEL_FOLDER];
    expect(await measure(...model, "--min-recall", "0.6")).toMatchObject({
      code: 0,
      result: { rates: RATES },
    });
    expect(await measure(...model, "--min-recall", "0.9")).toMatchObject({
      code: 1,
      stderr: "svc: Recall 66.7% is below --min-recall 90.0%.\n",
    });
  });
});
