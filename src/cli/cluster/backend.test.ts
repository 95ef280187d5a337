/** The backend for a cluster, with an API server in memory. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CORE } from "../../kubernetes/objects.ts";
import { ScriptedApiServer, type FakeRequest } from "./testing-api.ts";
import type { Backend } from "../backend.ts";
import { CliError } from "../errors.ts";
import { clusterBackend } from "./backend.ts";
import { addressOf } from "./views.ts";

const MOCK =
  "apiVersion: svc.io/v1\nkind: ModelProvider\nmetadata: {name: mock}\nspec: {provider: mock}\n";
const SECRET =
  "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {api-key: sk-hidden}\n";
const SYSTEM = "svc-system";

let api: ScriptedApiServer;
let backend: Backend;

beforeEach(async () => {
  api = await ScriptedApiServer.start();
  backend = clusterBackend({
    context: undefined,
    kubeconfig: api.kubeconfig(),
    systemNamespace: SYSTEM,
  });
  // Somebody judges what is written, at once.
  api.handle(({ body }) => {
    const object = body as Record<string, unknown> | undefined;
    if (object?.["kind"] === "ModelProvider")
      object["status"] = { ready: true, reason: "Ready", message: "" };
    return undefined;
  });
});

afterEach(() => api.close());

const source = (text: string): { source: string; text: string }[] => [{ source: "a.yaml", text }];

/** Requests that change something. */
const writes = (): FakeRequest[] =>
  api.requests.filter(({ method, query }) => method !== "GET" && query.get("dryRun") === null);

describe("apply", () => {
  test("writes by server-side apply, after a dry run of all, and says what changed", async () => {
    expect(await backend.apply(source(`${SECRET}---\n${MOCK}`))).toMatchObject([
      { kind: "Secret", name: "key", change: "created" },
      { kind: "ModelProvider", change: "created", object: { status: { ready: true } } },
    ]);
    const patches = api.requests.filter(({ method }) => method === "PATCH");
    expect(patches.map(({ query }) => query.get("dryRun"))).toEqual(["All", "All", null, null]);
    for (const { query } of patches)
      expect(Object.fromEntries(query)).toMatchObject({
        fieldManager: "svc",
        fieldValidation: "Strict",
        force: "true",
      });
    expect(await backend.apply(source(MOCK))).toMatchObject([{ change: "unchanged" }]);
    const other = MOCK.replace("provider: mock", "provider: mock, allowedModels: [x]");
    expect(await backend.apply(source(other))).toMatchObject([{ change: "configured" }]);
  });

  test("writes nothing if the API server refuses one of them", async () => {
    api.handle(({ method, path, query }) =>
      method === "PATCH" && path.includes("modelproviders") && query.get("dryRun") === "All"
        ? { status: 422, body: { reason: "Invalid", message: "spec.provider: no" } }
        : undefined,
    );
    await expect(backend.apply(source(`${SECRET}---\n${MOCK}`))).rejects.toThrow(
      new CliError("ModelProvider default/mock: spec.provider: no"),
    );
    expect(writes()).toEqual([]);
  });

  test("says what was written before a failure", async () => {
    api.handle(({ method, path, query }) =>
      method === "PATCH" && path.includes("modelproviders") && query.get("dryRun") === null
        ? { status: 500, body: { message: "no space" } }
        : undefined,
    );
    await expect(backend.apply(source(`${SECRET}---\n${MOCK}`))).rejects.toThrow(
      /no space\n1 of 2 objects were written/,
    );
  });

  test.each([
    [
      "is not valid",
      MOCK.replace("provider: mock", "provider: x"),
      "a.yaml:4: ModelProvider mock: spec.provider",
    ],
    ["is empty", "", "nothing to apply"],
    [
      "names an environment variable",
      SECRET.replace("sk-hidden", `"\${KEY}"`),
      "Secret default/key: stringData.api-key names the environment variable KEY",
    ],
  ])("refuses input that %s, and asks for nothing", async (_name, text, words) => {
    await expect(backend.apply(source(text))).rejects.toThrow(words);
    expect(api.requests).toEqual([]);
  });

  test("create refuses what exists, also if it came in the meantime", async () => {
    await backend.apply(source(MOCK), { create: true });
    await expect(backend.apply(source(MOCK), { create: true })).rejects.toThrow(
      "ModelProvider default/mock exists already",
    );
    api.handle(({ method, path }) =>
      method === "GET" && path.endsWith("/mock") ? { status: 404, body: {} } : undefined,
    );
    await expect(backend.apply(source(MOCK), { create: true })).rejects.toThrow(
      "ModelProvider default/mock exists already",
    );
  });
});

describe("what is shown", () => {
  test("no value of a Secret, nor kubectl's copy of it", async () => {
    api.put(CORE.secret, {
      metadata: {
        name: "key",
        namespace: "default",
        annotations: { "kubectl.kubernetes.io/last-applied-configuration": "sk-hidden" },
      },
      data: { "api-key": Buffer.from("sk-hidden").toString("base64") },
    });
    const [secret] = await backend.list("Secret", "default");
    expect(secret).toEqual({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { namespace: "default", name: "key" },
      keys: ["api-key"],
      status: { ready: true, reason: "Ready", message: "" },
    });
  });

  test.each<[string, object, object]>([
    ["without a status", {}, { ready: false, reason: "Pending" }],
    [
      "whose newest version is not judged",
      { status: { ready: true, reason: "Ready", observedGeneration: 0 } },
      { ready: false, reason: "Pending" },
    ],
    [
      "with usage",
      { status: { ready: true, reason: "Ready", observedGeneration: 1, costTodayUSD: 1.5 } },
      { ready: true, reason: "Ready", costTodayUSD: 1.5 },
    ],
  ])("an Agent %s", async (_name, more, status) => {
    api.put(addressOf("Agent"), { metadata: { name: "a", namespace: "team" }, spec: {}, ...more });
    expect(await backend.get("Agent", "team", "a")).toMatchObject({ status });
    expect(await backend.get("Agent", "default", "a")).toBeUndefined();
  });
});

describe("patch and delete", () => {
  test("a patch demands its version", async () => {
    const { metadata } = api.put(addressOf("Session"), {
      metadata: { name: "k", namespace: "default" },
      spec: { a: 1 },
    });
    const patch = { metadata: { resourceVersion: metadata.resourceVersion }, spec: { a: 2 } };
    expect(await backend.patch("Session", "default", "k", patch)).toMatchObject({
      change: "configured",
      object: { spec: { a: 2 } },
    });
    await expect(backend.patch("Session", "default", "k", patch)).rejects.toThrow(
      "Session default/k has changed in the meantime",
    );
    await expect(backend.patch("Session", "default", "x", {})).rejects.toThrow(
      "there is no Session",
    );
  });

  test("delete says whether there was one", async () => {
    await backend.apply(source(MOCK));
    expect(await backend.delete("ModelProvider", "default", "mock")).toBe(true);
    expect(await backend.delete("ModelProvider", "default", "mock")).toBe(false);
  });
});

test("tools come from a gateway's pod, of which there must be one", async () => {
  await expect(backend.tools("default", "tracker")).rejects.toThrow(
    "No pod of the gateway is ready in the namespace svc-system",
  );
});

describe("svc token", () => {
  test("is read from the Secret of the agent", async () => {
    api.put(addressOf("Agent"), { metadata: { name: "a", namespace: "team" }, spec: {} });
    await expect(backend.token("team", "a")).rejects.toThrow("has no token yet");
    api.put(CORE.secret, {
      metadata: { name: "svc-token-a", namespace: "team" },
      data: { token: Buffer.from("svcw_x").toString("base64") },
    });
    expect(await backend.token("team", "a")).toBe("svcw_x");
    await expect(backend.token("team", "b")).rejects.toThrow("no Agent b in namespace team");
  });
});

test.each([
  [401, "refuses the credentials of the kubeconfig"],
  [403, "Ask an administrator of the cluster for this right."],
  [404, "install them: svc install"],
  [500, "it broke"],
])("a refusal with status %i is explained", async (status, words) => {
  api.handle(() => ({ status, body: { message: "it broke" } }));
  await expect(backend.list("Agent", undefined)).rejects.toThrow(CliError);
  await expect(backend.list("Agent", undefined)).rejects.toThrow(words);
});

test("an API server that is gone is explained", async () => {
  await api.close();
  await expect(backend.list("Agent", undefined)).rejects.toThrow(
    /of the context test .* does not answer/,
  );
  api = await ScriptedApiServer.start();
});
