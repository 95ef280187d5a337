/** The control API over a real socket and a real folder. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { unixRequest, type UnixResponse } from "../platform/unix-http.ts";
import { ControlWorld } from "./testing.ts";

const FOLDER = `
apiVersion: svc.io/v1
kind: Agent
metadata: {name: hello, namespace: team, labels: {app: x}}
spec: {models: ["openai/*"]}
---
apiVersion: v1
kind: Secret
metadata: {name: openai, namespace: team}
stringData: {api-key: sk-secret-of-the-folder}
---
apiVersion: svc.io/v1
kind: ModelProvider
metadata: {name: openai, namespace: team}
spec: {provider: openai, apiKeySecretRef: {name: openai, key: api-key}}
`;

const MOCK =
  "apiVersion: svc.io/v1\nkind: ModelProvider\nmetadata: {name: mock}\nspec: {provider: mock}\n";

/** The condition of an object that is in use as written. */
const READY = {
  type: "Ready",
  status: "True",
  reason: "Ready",
  message: "",
  lastTransitionTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/) as unknown,
};

let world: ControlWorld;

beforeEach(async () => {
  world = await ControlWorld.start({ "all.yaml": FOLDER });
});

afterEach(() => world.close());

const ask = (url: string, method = "GET", body?: unknown): Promise<UnixResponse> =>
  unixRequest(world.socket, url, method, { body });
const apply = (...texts: string[]): Promise<UnixResponse> =>
  ask("/objects", "POST", { manifests: texts.map((text, i) => ({ source: `${i}.yaml`, text })) });
const body = (response: UnixResponse): unknown => JSON.parse(response.body) as unknown;

describe("as it was", () => {
  test("gives the status", async () => {
    expect(body(await ask("/status"))).toMatchObject({
      ready: true,
      policyVersion: "1",
      objects: [
        { kind: "Agent", namespace: "team", name: "hello", ready: true, reason: "Ready" },
        { kind: "ModelProvider" },
        { kind: "Secret" },
      ],
    });
  });

  test("gives an agent's token", async () => {
    expect(body(await ask("/agents/team/hello/token"))).toEqual({ token: "svcw_team_hello" });
  });

  test("tells why the tools of a Provider cannot be listed", async () => {
    expect(await ask("/providers/default/tracker/tools")).toMatchObject({ status: 404 });
    expect(body(await ask("/providers/default/tracker/tools"))).toEqual({
      error: "there is no Provider tracker of type mcp",
    });
    expect(await ask("/providers/default/tracker/tools", "POST")).toMatchObject({ status: 405 });
  });

  test("gives the configuration of an agent's sidecar, which may have no Provider", async () => {
    expect(body(await ask("/agents/team/hello/sidecar"))).toMatchObject({
      specs: { version: 1, workload: "team/hello", bindings: [] },
      token: "svcw_team_hello",
    });
  });

  test.each([
    ["that would run as root", "{runAsUser: 0}", "RunsAsRoot: spec.runAsUser must not be 0"],
    ["no version of which is valid", "{modles: []}", "InvalidSpec: "],
  ])("gives none for an agent %s, and says why", async (_name, spec, message) => {
    await world.close();
    const object = `apiVersion: svc.io/v1\nkind: Agent\nmetadata: {name: a}\nspec: ${spec}\n`;
    world = await ControlWorld.start({ "a.yaml": object });
    expect(body(await ask("/objects/Agent/default/a"))).toMatchObject({
      status: { phase: "Failed", ready: false },
    });
    const reply = await ask("/agents/default/a/sidecar");
    expect(reply.status).toBe(409);
    expect(reply.body).toContain(`Agent a in namespace default is not in use: ${message}`);
    expect(reply.body).not.toContain("svcw_");
  });

  test("gives metrics, as Prometheus reads them", async () => {
    expect(await ask("/metrics")).toEqual({ status: 200, body: "svc_metric 1\n" });
  });

  test.each([
    ["GET", "/agents/default/hello/token", 404],
    ["GET", "/agents/team/openai/token", 404],
    ["GET", "/agents/team/hello", 404],
    ["GET", "/agents/team/hello/token/x", 404],
    ["GET", "/status/x", 404],
    ["GET", "/other", 404],
    ["GET", "/", 404],
    ["GET", "//", 404],
    ["GET", "/%E0%A4%A", 404],
    ["POST", "/status", 405],
    ["DELETE", "/agents/team/hello/token", 405],
    ["GET", "/objects", 405],
    ["DELETE", "/objects/Agent", 405],
    ["PUT", "/objects/Agent/team/hello", 405],
    ["GET", "/objects/Pod", 404],
    ["GET", "/objects/__proto__", 404],
    ["GET", "/objects/Agent/team", 404],
    ["GET", "/objects/Agent/team/hello/spec", 404],
    ["GET", "/objects/Agent/default/hello", 404],
  ])("%s %s: %i", async (method, url, code) => {
    const reply = await ask(url, method);
    expect(reply.status).toBe(code);
    expect(reply.body).not.toContain("svcw_");
    expect(body(reply)).toMatchObject({ error: expect.any(String) as unknown });
  });
});

describe("objects", () => {
  test("of a GuardBinding with the counts of its checks, of others without", async () => {
    const binding = (name: string) =>
      "apiVersion: svc.io/v1\nkind: GuardBinding\n" +
      `metadata: {name: ${name}}\nspec: {classifier: {type: stub, endpoint: "http://g"}}\n`;
    await apply(binding("asked"), binding("idle"));
    world.guardCounts.set("default/asked", {
      benign: 10,
      injection: 2,
      jailbreak: 1,
      unavailable: 4,
    });
    const { items } = body(await ask("/objects/GuardBinding")) as {
      items: { metadata: { name: string }; status: object }[];
    };
    expect(items.map(({ metadata, status }) => [metadata.name, status])).toEqual([
      ["asked", expect.objectContaining({ ready: true, checks: 17, flagged: 3, unavailable: 4 })],
      ["idle", expect.objectContaining({ ready: true, checks: 0, flagged: 0, unavailable: 0 })],
    ]);
    const agent = body(await ask("/objects/Agent/team/hello")) as { status: object };
    expect(agent.status).not.toHaveProperty("checks");
  });

  test("with what is in force, its defaults, and its status with usage", async () => {
    world.usage.set("Agent/team/hello", { tokensToday: 12, requestsToday: 2, costTodayUSD: 0.5 });
    expect(body(await ask("/objects/Agent/team/hello"))).toEqual({
      apiVersion: "svc.io/v1",
      kind: "Agent",
      metadata: {
        namespace: "team",
        name: "hello",
        labels: { app: "x" },
        resourceVersion: expect.any(String) as unknown,
      },
      spec: { models: ["openai/*"], runAsUser: 65_532 },
      status: {
        ready: true,
        reason: "Ready",
        message: "",
        tokensToday: 12,
        requestsToday: 2,
        costTodayUSD: 0.5,
        conditions: [READY],
      },
    });
  });

  test("of one kind, of all namespaces or of one", async () => {
    await apply(MOCK);
    const names = async (url: string): Promise<unknown> =>
      (body(await ask(url)) as { items: { metadata: { name: string } }[] }).items.map(
        ({ metadata }) => metadata.name,
      );
    expect(await names("/objects/ModelProvider")).toEqual(["mock", "openai"]);
    expect(await names("/objects/ModelProvider?namespace=team")).toEqual(["openai"]);
    expect(await names("/objects/ModelProvider?namespace=none")).toEqual([]);
  });

  test("a Secret shows the names of its keys, and nothing that is made from its values", async () => {
    const reply = await ask("/objects/Secret/team/openai");
    expect(body(reply)).toEqual({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { namespace: "team", name: "openai" },
      keys: ["api-key"],
      status: { ready: true, reason: "Ready", message: "", conditions: [READY] },
    });
    expect((await ask("/objects/Secret")).body).not.toContain("sk-secret");
  });

  test("one that was never loaded has a status and no spec", async () => {
    writeFileSync(
      path.join(world.resources, "bad.yaml"),
      "apiVersion: svc.io/v1\nkind: Agent\nmetadata: {name: bad}\nspec: {modles: []}\n",
    );
    await apply(MOCK);
    expect(body(await ask("/objects/Agent/default/bad"))).toMatchObject({
      status: { ready: false, reason: "InvalidSpec" },
    });
    expect(body(await ask("/objects/Agent/default/bad"))).not.toHaveProperty("spec");
  });
});

describe("changes", () => {
  test("are in force when they are answered, with the object as it now is", async () => {
    const reply = await apply(MOCK);
    expect(reply.status).toBe(200);
    expect(body(reply)).toMatchObject({
      results: [
        {
          kind: "ModelProvider",
          namespace: "default",
          name: "mock",
          change: "created",
          object: { spec: { provider: "mock" }, status: { ready: true } },
        },
      ],
    });
    expect(world.settled).toBe(1);
    expect(body(await apply(MOCK))).toMatchObject({ results: [{ change: "unchanged" }] });
    expect(
      body(
        await ask("/objects/ModelProvider/default/mock", "PATCH", {
          spec: { allowedModels: ["a"] },
        }),
      ),
    ).toMatchObject({
      change: "configured",
      object: { spec: { provider: "mock", allowedModels: ["a"] } },
    });
    expect(await ask("/objects/ModelProvider/default/mock", "DELETE")).toEqual({
      status: 200,
      body: "{}",
    });
    expect((await ask("/objects/ModelProvider/default/mock")).status).toBe(404);
  });

  test("refused: what is wrong with each document, and nothing is written", async () => {
    const reply = await apply(MOCK, `${MOCK.replace("mock}", "Bad_Name}")}---\n: [`);
    expect(reply.status).toBe(422);
    const { problems } = body(reply) as { problems: string[] };
    expect(problems).toHaveLength(2);
    expect(problems[0]).toMatch(
      /^1\.yaml:3: ModelProvider Bad_Name: metadata\.name: must be a DNS-1123 label/,
    );
    expect(existsSync(path.join(world.resources, "applied"))).toBe(false);
  });

  test.each<[string, string, unknown, number]>([
    ["POST", "/objects?create=true", { manifests: [{ source: "a", text: FOLDER }] }, 409],
    ["POST", "/objects", { manifests: [] }, 422],
    ["POST", "/objects", { manifests: [{ source: "a", text: "# nothing" }] }, 422],
    ["POST", "/objects", { manifests: "x" }, 400],
    ["POST", "/objects", { manifests: [], more: 1 }, 400],
    ["POST", "/objects", [], 400],
    ["POST", "/objects", undefined, 400],
    ["PATCH", "/objects/Agent/team/hello", [], 400],
    ["PATCH", "/objects/Agent/team/hello", null, 400],
    ["PATCH", "/objects/Agent/team/hello", { spec: {} }, 409],
    ["PATCH", "/objects/Agent/team/other", { spec: {} }, 404],
    ["DELETE", "/objects/Agent/team/hello", undefined, 409],
    ["DELETE", "/objects/Agent/team/other", undefined, 404],
    ["DELETE", "/objects/Agent/..%2F..%2F/all.yaml", undefined, 422],
    ["DELETE", "/objects/Agent/team/..%2F..%2Fall", undefined, 422],
    ["PATCH", "/objects/Secret/team/..%2f..%2fall", {}, 422],
  ])("%s %s with %j: %i", async (method, url, sent, code) => {
    const before = readFileSync(path.join(world.resources, "all.yaml"), "utf8");
    const reply = await ask(url, method, sent);
    expect([reply.status, reply.body]).toEqual([code, expect.stringContaining('"error"')]);
    expect(readdirSync(world.resources)).toEqual(["all.yaml"]);
    expect(readFileSync(path.join(world.resources, "all.yaml"), "utf8")).toBe(before);
  });

  test("an object of another file names that file", async () => {
    expect(body(await apply(FOLDER))).toMatchObject({
      problems: [
        expect.stringContaining("Agent team/hello is defined in all.yaml:2"),
        expect.anything(),
        expect.anything(),
      ],
    });
  });

  test("neither log nor answers repeat a Secret", async () => {
    const secret =
      "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: sk-very-secret";
    const replies = [
      await apply(`${secret}}`),
      await apply(`${secret}, k: sk-very-secret}`),
      await apply(`${secret}}\nextra: sk-very-secret`),
      await ask("/objects", "POST", `sk-very-secret`),
    ];
    for (const reply of replies) expect(reply.body).not.toContain("sk-very");
    expect(JSON.stringify(world.log)).not.toContain("sk-very");
    expect(
      readFileSync(path.join(world.resources, "applied/secret.default.s.yaml"), "utf8"),
    ).toContain("sk-very-secret");
  });
});

test("a body that breaks off changes nothing", async () => {
  await new Promise<void>((resolve) => {
    const request = http.request({
      socketPath: world.socket,
      path: "/objects",
      method: "POST",
      headers: { "content-length": 1_000 },
    });
    request.on("error", () => resolve());
    request.write(JSON.stringify({ manifests: [{ source: "a", text: MOCK }] }), () =>
      request.destroy(),
    );
  });
  expect((await ask("/status")).status).toBe(200);
  expect(readdirSync(world.resources)).toEqual(["all.yaml"]);
});
