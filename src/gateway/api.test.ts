import type http from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { request as httpRequest } from "node:http";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { compileClientAddress } from "../access/client-address.ts";
import { AuditTrail } from "../llm/settlement/audit-trail.ts";
import { provider, snapshot, TOKEN } from "../llm/testing.ts";
import { systemClock } from "../platform/clock.ts";
import { createApi } from "./api.ts";

let dir: string;
let server: http.Server | undefined;
let reason: string | undefined;
let metrics: () => Promise<string>;

interface Reply {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
  reason = undefined;
  metrics = async () => "svc_metric 1\n";
});

afterEach(() => {
  server?.close();
  server?.closeAllConnections();
  server = undefined;
  rmSync(dir, { recursive: true });
});

async function listening(created: http.Server): Promise<void> {
  server = created;
  await new Promise<void>((resolve) => created.listen(path.join(dir, "s.sock"), resolve));
}

/** The path is sent unchanged: it is not converted to a URL. */
function ask(url: string, headers: Record<string, string> = {}, method = "GET"): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const outgoing = httpRequest(
      { socketPath: path.join(dir, "s.sock"), path: url, method, headers },
      (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part));
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            type: response.headers["content-type"] ?? "",
            text: Buffer.concat(parts).toString(),
          }),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end();
  });
}

const auth = { authorization: `Bearer ${TOKEN}` };
const anthropic = { "x-api-key": TOKEN, "anthropic-version": "2023-06-01" };

describe("the HTTP API", () => {
  const defects: unknown[] = [];

  beforeEach(async () => {
    defects.length = 0;
    const policy = snapshot(provider("openai"), provider("anthropic"));
    await listening(
      createApi({
        policy: () => policy,
        clientAddress: compileClientAddress([]),
        clock: systemClock,
        audit: new AuditTrail(undefined),
        metrics: () => metrics(),
        notReady: () => reason,
        onDefect: (error) => defects.push(error),
        newCallId: () => "call-1",
      }),
    );
  });

  test("metrics, as Prometheus reads them", async () => {
    expect(await ask("/metrics")).toEqual({
      status: 200,
      type: "text/plain; version=0.0.4",
      text: "svc_metric 1\n",
    });
    expect(await ask("/metrics", {}, "HEAD")).toMatchObject({ status: 200, text: "" });
  });

  test("metrics that fail are a defect, and end nothing else", async () => {
    metrics = () => Promise.reject(new Error("broken"));
    const { status, text } = await ask("/metrics");
    expect([status, text]).toEqual([500, expect.not.stringContaining("broken")]);
    expect(defects).toEqual([new Error("broken")]);
    expect((await ask("/readyz")).status).toBe(200);
  });

  test.each([
    ["/v1/models", 401],
    ["/ext/v1/models", 401],
    ["/v1/messages", 405],
    ["/unknown", 404],
    ["/v1/models", 200],
    ["/v1/models/openai/m", 200],
  ])("the answer to %s names its call (%i)", async (url, status) => {
    const answer = await new Promise<http.IncomingMessage>((resolve, reject) => {
      const headers = status === 200 ? auth : {};
      httpRequest({ socketPath: path.join(dir, "s.sock"), path: url, headers }, resolve)
        .on("error", reject)
        .end();
    });
    answer.resume();
    expect([answer.statusCode, answer.headers["x-svc-call-id"]]).toEqual([status, "call-1"]);
  });

  test("readiness, with its reason", async () => {
    expect(await ask("/readyz")).toMatchObject({ status: 200, text: "ok\n" });
    reason = "Envoy has not taken the configuration yet";
    expect(await ask("/readyz")).toMatchObject({ status: 503, text: `${reason}\n` });
  });

  test.each<[string, string, Record<string, string>, object]>([
    [
      "OpenAI's list",
      "/v1/models",
      auth,
      { object: "list", data: [{ id: "openai/m" }, { id: "anthropic/m" }] },
    ],
    [
      "Anthropic's list",
      "/v1/models?limit=20",
      anthropic,
      { has_more: false, data: [{ type: "model" }, {}] },
    ],
    [
      "Gemini's list",
      `/v1beta/models?key=${TOKEN}`,
      {},
      { models: [{ name: "models/openai/m" }, {}] },
    ],
    ["a model", "/v1/models/openai/m", auth, { id: "openai/m", object: "model" }],
    ["a model, encoded", "/v1/models/openai%2Fm", auth, { id: "openai/m" }],
    ["a model with a colon", "/v1/models/openai/llama3:8b", auth, { id: "openai/llama3:8b" }],
    [
      "Gemini's model",
      "/v1beta/models/openai/m",
      { "x-goog-api-key": TOKEN },
      { name: "models/openai/m" },
    ],
    [
      "Anthropic's model",
      "/v1/models/anthropic/m",
      anthropic,
      { type: "model", id: "anthropic/m" },
    ],
  ])("%s", async (_name, url, headers, shape) => {
    const { status, type, text } = await ask(url, headers);
    expect([status, type]).toEqual([200, "application/json"]);
    expect(JSON.parse(text)).toMatchObject(shape);
    expect(text).not.toContain("sk-secret");
  });

  const openai = (code: string) => ({ error: { code, param: null } });

  test.each<[string, string, string, Record<string, string>, number, object]>([
    ["no key", "GET", "/v1/models", {}, 401, openai("missing_key")],
    [
      "an unknown key",
      "GET",
      "/v1/models",
      { authorization: "Bearer svcw_other" },
      401,
      openai("invalid_key"),
    ],
    [
      "no key, of Anthropic",
      "GET",
      "/v1/models",
      { "anthropic-version": "1" },
      401,
      { type: "error" },
    ],
    [
      "no key, of Gemini",
      "GET",
      "/v1beta/models",
      {},
      401,
      { error: { code: 401, status: "UNAUTHENTICATED" } },
    ],
    ["an unknown model", "GET", "/v1/models/gone", auth, 404, openai("model_not_found")],
    [
      "an unknown model, of Anthropic",
      "GET",
      "/v1/models/gone",
      anthropic,
      404,
      { type: "error", error: { type: "not_found_error" } },
    ],
    [
      "an unknown model, of Gemini",
      "GET",
      "/v1beta/models/gone",
      auth,
      404,
      { error: { status: "NOT_FOUND" } },
    ],
    ["an unknown path", "GET", "/v1/files", auth, 404, openai("not_found")],
    ["the root", "GET", "/", {}, 404, openai("not_found")],
    ["a path of two slashes", "GET", "//", {}, 404, openai("not_found")],
    ["a path that is no URL", "GET", "/%", {}, 404, openai("not_found")],
    ["metrics by another spelling", "GET", "/%6detrics", {}, 404, openai("not_found")],
    ["metrics behind a dot segment", "GET", "/agents/%2e%2e/metrics", {}, 404, openai("not_found")],
    ["metrics behind dots", "GET", "/agents/../metrics", {}, 404, openai("not_found")],
    ["models by another spelling", "GET", "/v1/%6dodels", auth, 404, openai("not_found")],
    ["broken encoding", "GET", "/v1/models/%E0%A4%A", auth, 404, {}],
    ["a call by GET", "GET", "/v1/chat/completions", auth, 405, openai("method_not_allowed")],
    ["a call by PUT, of Anthropic", "PUT", "/v1/messages", auth, 405, { type: "error" }],
    ["metrics by POST", "POST", "/metrics", {}, 405, openai("method_not_allowed")],
    ["models by DELETE", "DELETE", "/v1/models", auth, 405, openai("method_not_allowed")],
    [
      "an unknown path of Gemini",
      "GET",
      "/v1beta/files",
      auth,
      404,
      { error: { status: "NOT_FOUND" } },
    ],
  ])("refuses %s", async (_name, method, url, headers, status, shape) => {
    const reply = await ask(url, headers, method);
    expect([reply.status, reply.type]).toEqual([status, "application/json"]);
    expect(JSON.parse(reply.text)).toMatchObject(shape);
  });
});
