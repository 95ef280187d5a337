import { parseAllDocuments } from "yaml";
import { beforeEach, describe, expect, test } from "vitest";
import { parseDocuments } from "../resources/parse.ts";
import { NOW, CliWorld } from "./testing.ts";

const READY = { ready: true, reason: "Ready", message: "" };

let world: CliWorld;

beforeEach(() => {
  world = new CliWorld();
  const { backend } = world;
  backend.add("Agent", "hello", {
    metadata: { namespace: "default", name: "hello", labels: { app: "x" }, resourceVersion: "v7" },
    spec: {
      models: ["a/*", "b/x", "c/y", "d/z"],
      guards: [{ binding: "web" }, { binding: "strict" }],
      runAsUser: 65_532,
    },
    status: {
      ready: true,
      reason: "Ready",
      message: "",
      tokensToday: 1_234,
      requestsToday: 5,
      costTodayUSD: 0.012_34,
      unpricedToday: 2,
      inFlight: 1,
    },
  });
  backend.add("Agent", "broken", {
    status: { ready: false, reason: "UnknownProvider", message: "no \u001b[31mModelProvider\nx" },
  });
  backend.add(
    "Agent",
    "far",
    {
      spec: { models: [] },
      status: {
        ready: true,
        reason: "Ready",
        message: "",
        tokensToday: 0,
        requestsToday: 0,
        costTodayUSD: 12.5,
      },
    },
    "team",
  );
  backend.add("ModelProvider", "openai", {
    spec: { provider: "openai", allowedModels: ["gpt-5*"], externalAccess: { enabled: true } },
  });
  backend.add("AccessKey", "old", {
    spec: {
      modelProvider: "openai",
      keySHA256: "c0ffee",
      expiresAt: new Date(NOW - 7_200_000).toISOString(),
    },
  });
  backend.add("AccessKey", "new", { spec: { modelProvider: "openai", keySHA256: "c0ffee" } });
  backend.add("Secret", "openai", { keys: ["api-key", "other"] });
});

const lines = (text: string): string[] =>
  text.split("\n").map((line) => line.replaceAll(/ {2,}/g, " | "));

describe("tables", () => {
  test("agents, with cost and what is not in it", async () => {
    expect(lines((await world.run("get", "agents")).stdout)).toEqual([
      "NAME | READY | REASON | TOKENS | REQUESTS | COST",
      "hello | yes | Ready | 1234 | 5 | $0.0123 (+2 unpriced)",
      "broken | no | UnknownProvider | - | - | -",
      "",
    ]);
  });

  test.each(["guards", "guard", "guard-bindings", "guardbinding", "gb", "GUARDS"])(
    "%s, with the counts of their checks",
    async (kind) => {
      world.backend.add("GuardBinding", "web", {
        spec: { classifier: { type: "stub" }, enforcement: "enforce" },
        status: { ...READY, checks: 12, flagged: 3, unavailable: 1 },
      });
      world.backend.add("GuardBinding", "unasked", {
        spec: { classifier: { type: "custom" }, enforcement: "audit" },
        status: { ready: false, reason: "SecretDoesNotExist", message: "no Secret" },
      });
      expect(lines((await world.run("get", kind)).stdout)).toEqual([
        "NAME | CLASSIFIER | ENFORCEMENT | READY | REASON | CHECKS | FLAGGED | UNAVAILABLE",
        "web | stub | enforce | yes | Ready | 12 | 3 | 1",
        "unasked | custom | audit | no | SecretDoesNotExist | - | - | -",
        "",
      ]);
    },
  );

  test("of all namespaces, wide; what steers a terminal does not reach it", async () => {
    expect(lines((await world.run("get", "agents", "-A", "-o", "wide")).stdout)).toEqual([
      "NAMESPACE | NAME | READY | REASON | TOKENS | REQUESTS | COST | IN-FLIGHT | MODELS | " +
        "GUARDS | MESSAGE",
      "default | hello | yes | Ready | 1234 | 5 | $0.0123 (+2 unpriced) | 1 | a/*,b/x,c/y+1 | " +
        "web,strict",
      "default | broken | no | UnknownProvider | - | - | - | - | - | - | no | [31mModelProvider x",
      "team | far | yes | Ready | 0 | 0 | $12.50 | - | - | -",
      "",
    ]);
  });

  test("model-providers, access-keys without hashes, secrets without values", async () => {
    expect(lines((await world.run("get", "mp")).stdout)).toEqual([
      "NAME | PROVIDER | READY | REASON | MODELS | EXTERNAL | TOKENS",
      "openai | openai | yes | Ready | gpt-5* | yes | -",
      "",
    ]);
    expect(lines((await world.run("get", "accesskeys")).stdout)).toEqual([
      "NAME | PROVIDER | READY | REASON | TOKENS | REQUESTS | EXPIRES",
      "old | openai | yes | Ready | - | - | 2h ago",
      "new | openai | yes | Ready | - | - | never",
      "",
    ]);
    expect(lines((await world.run("get", "secret")).stdout)).toEqual([
      "NAME | KEYS | READY | REASON",
      "openai | api-key,other | yes | Ready",
      "",
    ]);
  });

  test("providers wide: where an MCP server is, and whether access keys may use it", async () => {
    world.backend.add("Provider", "tracker", {
      spec: {
        type: "mcp",
        mcp: { transport: "http", url: "https://mcp.example.com/mcp" },
        audit: { enforcement: "enforce" },
        externalAccess: { enabled: true },
      },
    });
    world.backend.add("Provider", "github", {
      spec: { type: "github", audit: { enforcement: "audit" } },
    });
    const [head, ...rows] = lines((await world.run("get", "providers", "-o", "wide")).stdout);
    expect(head).toContain("REQUESTS | TRANSPORT | URL | EXTERNAL | ALLOW");
    expect(rows.slice(0, 2).map((row) => row.split(" | ").slice(6, 9))).toEqual([
      ["http", "https://mcp.example.com/mcp", "yes"],
      ["-", "-", "no"],
    ]);
  });

  test("tools of an MCP server, with who may use them", async () => {
    const keys = ["a", "b", "c", "d"];
    world.backend.toolsView = {
      namespace: "team",
      provider: "tracker",
      enforcement: "enforce",
      tools: [
        { name: "read", description: "Reads\u001b[31m", allowed: true, keys },
        { name: "delete", allowed: false, keys: [] },
      ],
    };
    const ran = await world.run("get", "tools", "tracker", "-n", "team");
    expect(lines(ran.stdout)).toEqual([
      "TOOL | PROVIDER | KEYS",
      "read | allowed | a,b,c+1",
      "delete | denied | -",
      "",
    ]);
    expect(world.backend.calls).toEqual(["tools team/tracker"]);
    expect(lines((await world.run("get", "tool", "tracker", "-o", "wide")).stdout)).toEqual([
      "TOOL | PROVIDER | KEYS | DESCRIPTION",
      "read | allowed | a,b,c,d | Reads [31m",
      "delete | denied | - | -",
      "",
    ]);
    expect(JSON.parse((await world.run("get", "tools", "tracker", "-o", "json")).stdout)).toEqual(
      world.backend.toolsView,
    );
    world.backend.toolsView = { ...world.backend.toolsView, enforcement: "audit" };
    expect((await world.run("get", "tools", "tracker")).stdout).toContain("denied (audit)");
    world.backend.toolsView = { ...world.backend.toolsView, tools: [] };
    expect(await world.run("get", "tools", "tracker")).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "The MCP server tracker offers no tools.\n",
    });
  });

  test.each([
    [["get", "tools"], 2, "name one Provider of type mcp"],
    [["get", "tools", "a", "b"], 2, "name one Provider of type mcp"],
    [["get", "tools", "a", "-A"], 2, "name one Provider of type mcp"],
    [["get", "tools", "a", "-o", "yaml"], 2, "table, wide or json"],
    [["get", "tools", "a"], 1, "there is no Provider a"],
  ])("%j is refused", async (args, code, message) => {
    const ran = await world.run(...args);
    expect(ran).toMatchObject({ code, stdout: "" });
    expect(ran.stderr).toContain(message);
  });

  test("nothing there is said beside it, and is no failure", async () => {
    expect(await world.run("get", "agents", "-n", "none")).toEqual({
      code: 0,
      stdout: "",
      stderr: "No agents in namespace none.\n",
    });
    expect(await world.run("get", "agents", "-n", "none", "-o", "json")).toMatchObject({
      code: 0,
      stderr: "",
      stdout: expect.stringContaining('"items": []') as unknown,
    });
  });
});

describe("by name", () => {
  test.each([[["agent", "hello"]], [["agents", "hello"]], [["Agent", "hello"]], [["agent/hello"]]])(
    "%j",
    async (args) => {
      expect((await world.run("get", ...args, "-o", "name")).stdout).toBe("agent/hello\n");
    },
  );

  test.each([["model-provider"], ["modelproviders"], ["ModelProvider"], ["mp"]])(
    "%s is the kind",
    async (kind) => {
      expect((await world.run("get", kind, "-o", "name")).stdout).toBe("model-provider/openai\n");
    },
  );

  test("one as JSON is the object; several are a list", async () => {
    expect(
      JSON.parse((await world.run("get", "agent", "hello", "-o", "json")).stdout),
    ).toMatchObject({ kind: "Agent", metadata: { name: "hello" }, status: { tokensToday: 1_234 } });
    expect(
      JSON.parse((await world.run("get", "agent/hello", "agent/broken", "-o", "json")).stdout),
    ).toMatchObject({ kind: "List", items: [{ kind: "Agent" }, { kind: "Agent" }] });
  });

  test.each<[readonly string[], number, string]>([
    [["agent", "none"], 1, "there is no agent none in namespace default"],
    [["agent", "far"], 1, "there is no agent far in namespace default"],
    [["agent", "hello", "-A"], 2, "use -n, not -A"],
    [["agent/hello", "secret/openai"], 2, "name objects of one kind"],
    [["agent/"], 2, "'agent/' is not <kind>/<name>"],
    [["agent/a/b"], 2, "is not <kind>/<name>"],
    [["pods"], 2, "there is no kind 'pods': use one of agents"],
    [["constructor"], 2, "there is no kind 'constructor'"],
    [["agents", "-o", "xml"], 2, "Allowed choices are table, wide, json, yaml, name."],
    [["metrics", "-o", "yaml"], 2, "metrics are printed as"],
  ])("%j: %i", async (args, code, words) => {
    const ran = await world.run("get", ...args);
    expect([ran.code, ran.stdout]).toEqual([code, ""]);
    expect(ran.stderr).toContain(words);
  });
});

test("YAML can be applied again", async () => {
  const { stdout } = await world.run("get", "model-providers", "-o", "yaml");
  expect(
    parseDocuments(
      stdout.replace(
        "provider: openai\n",
        "provider: openai\n  apiKeySecretRef: {name: a, key: b}\n",
      ),
      "",
    ).problems,
  ).toEqual([]);
  const agents = (await world.run("get", "agents", "-o", "yaml")).stdout;
  expect(
    (parseAllDocuments(agents) as { toJS(): unknown }[]).map((document) => document.toJS()),
  ).toMatchObject([{ kind: "Agent" }, { kind: "Agent" }]);
});

describe("agent-def", () => {
  test("is the definition without its state, as svc apply takes it", async () => {
    const { stdout } = await world.run("get", "agent-def", "hello");
    expect(stdout).toBe(
      "apiVersion: svc.io/v1\nkind: Agent\nmetadata:\n  namespace: default\n  name: " +
        "hello\n  labels:\n    app: x\nspec:\n  models:\n    - a/*\n    - b/x\n    - c/y\n   " +
        " - d/z\n  guards:\n    - binding: web\n    - binding: strict\n  runAsUser: 65532\n",
    );
    expect(parseDocuments(stdout, "").problems).toEqual([]);
  });

  test("as JSON; one that is not there", async () => {
    expect(
      JSON.parse((await world.run("get", "agentdef", "hello", "-o", "json")).stdout),
    ).not.toHaveProperty("status");
    expect((await world.run("get", "agent-def", "none")).stderr).toBe(
      "svc: there is no agent none in namespace default\n",
    );
  });
});

describe("metrics", () => {
  beforeEach(() => {
    world.backend.metricsText = [
      "# HELP svc_llm_requests_total x",
      'svc_llm_requests_total{workload="default/hello",status="200"} 3',
      'svc_odd{a="say \\"hi\\", {x}\\n",b=""} 0.5',
      'svc_llm_duration_seconds_bucket{le="1",workload="w"} 2',
      'svc_llm_duration_seconds_bucket{le="+Inf",workload="w"} 4',
      'svc_llm_duration_seconds_sum{workload="w"} 1.2',
      'svc_llm_duration_seconds_count{workload="w"} 4',
      "process_cpu_seconds_total 1",
      "",
    ].join("\n");
  });

  test("are a table of the gateway's own, histograms as count and mean", async () => {
    expect(lines((await world.run("get", "metrics")).stdout)).toEqual([
      "METRIC | LABELS | VALUE",
      "svc_llm_requests_total | workload=default/hello status=200 | 3",
      'svc_odd | a=say "hi", {x} | b= | 0.5',
      "svc_llm_duration_seconds | workload=w | 4, mean 0.3",
      "",
    ]);
  });

  test("of those asked for, as JSON, or as they are", async () => {
    expect((await world.run("get", "metrics", "process_")).stdout).toContain(
      "process_cpu_seconds_total",
    );
    expect(JSON.parse((await world.run("get", "metrics", "svc_odd", "-o", "json")).stdout)).toEqual(
      [{ name: "svc_odd", labels: { a: 'say "hi", {x}\n', b: "" }, value: 0.5 }],
    );
    expect((await world.run("get", "metrics", "-o", "wide")).stdout).toBe(
      world.backend.metricsText,
    );
    expect((await world.run("get", "metrics", "none_")).stdout).toBe("No metrics yet.\n");
  });
});
