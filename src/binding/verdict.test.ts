/** The verdict on a request, in the order of the checks, and what follows a permit. */
import { describe, expect, test } from "vitest";
import type { AuthzReply } from "../envoy/ext-authz/wire.ts";
import { InjectionError, NO_INJECTION, type ServiceResource } from "../providers/contract.ts";
import { HOST, TestSidecar } from "./testing.ts";
import { actionsOf, resourcesOf } from "./verdict.ts";

const IN: ServiceResource = { kind: "scoped", key: "projects", value: "mine" };
const OUT: ServiceResource = { kind: "scoped", key: "projects", value: "theirs" };
const WIDE: ServiceResource = { kind: "unscopable", reason: "it is about everything" };

function body(reply: AuthzReply): Record<string, unknown> {
  if (reply.kind !== "denied") throw new Error(JSON.stringify(reply));
  return { status: reply.status, ...(JSON.parse(reply.body) as Record<string, unknown>) };
}

function acting(sidecar: TestSidecar, ...resources: readonly ServiceResource[]): TestSidecar {
  sidecar.resolution = { kind: "resolved", actions: [{ action: "things:read", resources }] };
  return sidecar;
}

test("a host that is bound to no Provider is refused", async () => {
  const request = { authority: "other.example", serverName: "other.example" };
  const sidecar = new TestSidecar();
  expect(body(await sidecar.check(request))).toMatchObject({ status: 403, code: "unknown_host" });
  expect(sidecar.audit.fields).toMatchObject([{ allowed: false }]);
});

describe("a request that the service might read in another way is refused, in audit mode too", () => {
  test.each<[name: string, request: object, shown: string]>([
    ["a header with an odd name", { headers: [["x_a\u00e9", "1"]] }, "x_a?"],
    ["a header of another method", { headers: [["x-http-method", "PUT"]] }, "x-http-method"],
    ["a parameter of another method", { path: "/things?_method=PUT" }, "another method"],
  ])("%s", async (_name, request, shown) => {
    const sidecar = new TestSidecar({}, { enforcement: "audit" });
    const told = body(await sidecar.check(request));
    expect(told).toMatchObject({ status: 400, code: "malformed_request" });
    expect(told["message"]).toContain(shown);
  });
});

describe("httpRules", () => {
  const httpRules = [{ methods: ["GET"], paths: ["/things/**"], action: "allow" as const }];

  test("deny before the plugin is asked", async () => {
    const sidecar = new TestSidecar({ httpRules });
    sidecar.resolution = { kind: "unresolved", reason: "Never asked" };
    expect(body(await sidecar.check({ method: "POST", path: "/things/1" }))).toMatchObject({
      status: 403,
      code: "http_rule",
      binding: "service",
      rule: "policy.httpRules: no rule matches",
      message: "POST on this path is not allowed for service.",
    });
  });

  test("let pass what they allow", async () => {
    const reply = await new TestSidecar({ httpRules }).check({ path: "/things/1" });
    expect(reply.kind).toBe("ok");
  });
});

describe("a request that the plugin cannot resolve is denied", () => {
  test.each([
    [{ reason: "Not known", hint: "Use another" }, "Not known. Use another."],
    [{ reason: "Not known." }, "Not known."],
    [{ reason: "Not known!", hint: "Really?" }, "Not known! Really?"],
  ])("with its reason: %j", async (why, message) => {
    const sidecar = new TestSidecar();
    sidecar.resolution = { kind: "unresolved", ...why };
    expect(body(await sidecar.check())).toMatchObject({
      status: 403,
      code: "unresolved_action",
      rule: "the action cannot be determined",
      message,
    });
  });
});

describe("a scope", () => {
  const scope = { projects: ["mine"] };

  test("lets pass what is in it", async () => {
    expect((await acting(new TestSidecar({}, {}, scope), IN).check()).kind).toBe("ok");
  });

  test("denies what is outside, and names it", async () => {
    const told = body(await acting(new TestSidecar({}, {}, scope), IN, OUT).check());
    expect(told).toMatchObject({
      status: 403,
      code: "out_of_scope",
      action: "things:read",
      resource: "theirs",
      rule: "spec.scope.projects: not in it",
      message: "theirs is outside the scope of service.",
    });
  });

  test("denies what cannot be scoped", async () => {
    const told = body(await acting(new TestSidecar({}, {}, scope), IN, WIDE).check());
    expect(told).toMatchObject({
      code: "out_of_scope",
      rule: "spec.scope: it is about everything",
      message: "The resources of things:read here are outside the scope of service.",
    });
  });

  test("is judged after the actions", async () => {
    const sidecar = acting(new TestSidecar({ deny: ["*"] }, {}, scope), OUT);
    expect(body(await sidecar.check())).toMatchObject({ code: "action_denied" });
  });
});

describe("a denied action", () => {
  test("tells what is allowed", async () => {
    const sidecar = acting(new TestSidecar({ allow: ["books:*"] }), IN);
    expect(body(await sidecar.check())).toMatchObject({
      status: 403,
      code: "action_denied",
      action: "things:read",
      allowed: ["books:*"],
    });
  });

  test("tells nothing about what is allowed where nothing is listed", async () => {
    const told = body(await acting(new TestSidecar({ deny: ["things:*"] }), IN).check());
    expect(told).toMatchObject({ code: "action_denied", rule: "policy.deny: things:*" });
    expect(told).not.toHaveProperty("allowed");
  });

  test("is enough, whatever else is allowed", async () => {
    const sidecar = new TestSidecar({ allow: ["things:read"] });
    sidecar.resolution = {
      kind: "resolved",
      actions: [
        { action: "things:read", resources: [IN] },
        { action: "things:write", resources: [IN] },
      ],
    };
    expect(body(await sidecar.check())).toMatchObject({
      code: "action_denied",
      action: "things:write",
    });
  });

  test("is denied by its wider name, too", async () => {
    const sidecar = new TestSidecar({ deny: ["things:read"] });
    sidecar.resolution = {
      kind: "resolved",
      actions: [{ action: "things:list", broader: ["things:read"], resources: [IN] }],
    };
    expect(body(await sidecar.check())).toMatchObject({ code: "action_denied" });
  });
});

test("the name of an odd header is shown in part, and in plain characters", async () => {
  const headers = [[`x_${"\u0007\u00e9".repeat(100)}`, "1"] as const];
  const told = body(await new TestSidecar().check({ headers }));
  expect(told["message"]).toContain(` x_${"?".repeat(62)} `);
});

test("what the verdict names is each resource once, in its readable form", () => {
  const verdict = {
    binding: undefined,
    violations: [],
    resolution: {
      kind: "resolved",
      actions: [
        { action: "a", resources: [IN, { ...OUT, shown: "of others" }, WIDE] },
        { action: "b", resources: [IN, { kind: "none" }] },
      ],
    },
  } as const;
  expect(resourcesOf(verdict)).toEqual(["mine", "of others"]);
  expect(actionsOf(verdict).map(({ action }) => action)).toEqual(["a", "b"]);
  expect(actionsOf({ ...verdict, resolution: undefined })).toEqual([]);
  expect(actionsOf({ ...verdict, resolution: { kind: "unresolved", reason: "x" } })).toEqual([]);
});

test("in audit mode every check runs, and the request leaves", async () => {
  const policy = { httpRules: [], deny: ["things:read"], allow: ["books:*"] };
  const sidecar = acting(
    new TestSidecar(policy, { enforcement: "audit" }, { projects: ["mine"] }),
    OUT,
  );
  expect((await sidecar.check()).kind).toBe("ok");
  expect(sidecar.captured.lines).toHaveLength(1);
  expect(sidecar.audit.fields[0]).toMatchObject({ allowed: true });
  expect(JSON.stringify(sidecar.audit.fields[0])).toContain("policy.deny: things:read");
  expect(JSON.stringify(sidecar.audit.fields[0])).toContain("spec.scope.projects: not in it");
});

describe("a request that is permitted", () => {
  test("leaves with the credential, to the address of DNS", async () => {
    const sidecar = new TestSidecar();
    sidecar.inject = () => ({ ...NO_INJECTION, set: [["authorization", "Bearer real"]] });
    const request = { headers: [["authorization", "Bearer own"] as const] };
    expect(await sidecar.check(request)).toMatchObject({
      kind: "ok",
      set: [["authorization", "Bearer real"]],
      remove: [],
      metadata: { upstream: "192.0.2.1:443" },
    });
  });

  test("does not leave without a credential, and its record says that it was permitted", async () => {
    const sidecar = new TestSidecar();
    sidecar.inject = () => Promise.reject(new InjectionError("No token yet.", 503));
    expect(body(await sidecar.check())).toMatchObject({
      status: 503,
      code: "credential_unavailable",
      message: "No token yet.",
    });
    expect(sidecar.authorizer.underWay).toBe(0);
    expect(sidecar.captured.lines.map((line) => line["msg"])).toEqual([
      "no credential to inject",
      "service call denied",
    ]);
    expect(sidecar.captured.lines[0]).toMatchObject({
      binding: "service",
      reason: "No token yet.",
    });
  });

  test("does not leave if a plugin fails in another way", async () => {
    const sidecar = new TestSidecar();
    const defect = new Error("broken");
    sidecar.inject = () => Promise.reject(defect);
    await expect(sidecar.check()).rejects.toBe(defect);
    expect(sidecar.authorizer.underWay).toBe(0);
  });

  test("does not leave if DNS has no address", async () => {
    const sidecar = new TestSidecar();
    sidecar.upstream = undefined;
    expect(body(await sidecar.check())).toMatchObject({
      status: 502,
      code: "host_not_found",
      message: `DNS has no address for ${HOST}.`,
    });
    expect(sidecar.authorizer.underWay).toBe(0);
    expect(sidecar.captured.lines.map((line) => line["msg"])).toEqual(["service call denied"]);
  });
});

describe("metrics", () => {
  const decisions = async (sidecar: TestSidecar): Promise<object[]> => {
    const metric = await sidecar.registry.getSingleMetric("svc_binding_decisions_total")?.get();
    return metric?.values.map(({ labels, value }) => ({ ...labels, value })) ?? [];
  };

  test.each<[name: string, sidecar: TestSidecar, decision: string]>([
    ["allowed", new TestSidecar(), "allowed"],
    ["denied", new TestSidecar({ deny: ["*"] }), "denied"],
    ["not blocked", new TestSidecar({ deny: ["*"] }, { enforcement: "audit" }), "audited"],
  ])("count what is %s", async (_name, sidecar, decision) => {
    await sidecar.check();
    expect(await decisions(sidecar)).toEqual([
      { binding: "service", action: "things:read", decision, value: 1 },
    ]);
  });

  test("count what is bound to no Provider", async () => {
    const sidecar = new TestSidecar();
    await sidecar.check({ authority: "other.example", serverName: "other.example" });
    expect(await decisions(sidecar)).toEqual([
      { binding: "none", action: "unknown", decision: "denied", value: 1 },
    ]);
  });
});
