/** Tools of an MCP server through a gateway's pod, with an API server in memory. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { ApiError } from "../../kubernetes/connection.ts";
import type { ExecRequest, execInPod } from "../../kubernetes/exec.ts";
import { CliError } from "../errors.ts";
import { FakeInstallation, SYSTEM } from "./testing.ts";
import { readTools } from "./tools.ts";

let installation: FakeInstallation;
let asked: ExecRequest[];

beforeEach(async () => {
  installation = await FakeInstallation.start();
  asked = [];
});

afterEach(() => installation.close());

/** A pod whose program prints some texts, and then fails if an error is given. */
const printing =
  (parts: readonly string[], failure?: Error): typeof execInPod =>
  async (_connection, request) => {
    asked.push(request);
    for (const part of parts) request.onOutput(Buffer.from(part));
    await Promise.resolve();
    if (failure !== undefined) throw failure;
  };

const read = (exec: typeof execInPod) =>
  readTools(installation.session, { namespace: "team", provider: "tracker" }, exec);

const VIEW = { namespace: "team", provider: "tracker", enforcement: "enforce", tools: [] };
const answer = (status: number, body: unknown): string =>
  `${JSON.stringify({ status, body: JSON.stringify(body) })}\n`;

test("come from a program in a pod that is ready, however its output is divided", async () => {
  installation.pod("gw-0", { conditions: [{ type: "Ready", status: "False" }] });
  const text = answer(200, VIEW);
  expect(await read(printing([text.slice(0, 7), text.slice(7)]))).toEqual(VIEW);
  expect(asked).toMatchObject([
    {
      namespace: SYSTEM,
      pod: "gw-1",
      container: "gateway",
      command: ["/usr/local/bin/node", "/opt/svc/dist/gateway-pod.js", "tools", "team", "tracker"],
    },
  ]);
});

test.each([
  ["a refusal of the gateway", answer(404, { error: "there is no Provider tracker" })],
  ["an answer that is not the control API's", answer(200, VIEW).replace(/"body".*/, '"body":"<"}')],
  ["output in another form", "Usage: gateway-pod.js"],
  ["no output", ""],
])("%s is an error of the command", async (_name, text) => {
  await expect(read(printing([text]))).rejects.toThrow(CliError);
});

test("the gateway's own words reach the user", async () => {
  const refusal = answer(409, { error: "the Provider tracker is not ready" });
  await expect(read(printing([refusal]))).rejects.toThrow("the Provider tracker is not ready");
});

test("a program that fails is named with its pod, and not as a cluster that is gone", async () => {
  const failure = new ApiError(0, "ExecFailed", "the command in container gateway failed: gone");
  await expect(read(printing([], failure))).rejects.toThrow(
    new CliError("Pod gw-1: the command in container gateway failed: gone"),
  );
});

test("who may not run commands in pods is told so", async () => {
  const refusal = new ApiError(403, "Forbidden", "you may not run commands in pods");
  await expect(read(printing([], refusal))).rejects.toBe(refusal);
});

test("without a gateway that is ready, nothing is asked", async () => {
  installation.pod("gw-1", { conditions: [{ type: "Ready", status: "False" }] });
  await expect(read(printing([]))).rejects.toThrow("No pod of the gateway is ready");
  expect(asked).toEqual([]);
});
