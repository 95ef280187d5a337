/** Replies to Envoy: the headers that leave, and the wording of a denial. */
import { InjectionError } from "../providers/contract.ts";
import { describe, expect, test } from "vitest";
import type { AuthzReply } from "../envoy/ext-authz/wire.ts";
import { HOST, TestSidecar } from "./testing.ts";

const headers = (...names: readonly string[]): readonly (readonly [string, string])[] =>
  names.map((name) => [name, "x"]);

function removed(reply: AuthzReply): readonly string[] {
  if (reply.kind !== "ok") throw new Error(JSON.stringify(reply));
  return reply.remove;
}

function body(reply: AuthzReply): Record<string, unknown> {
  if (reply.kind !== "denied") throw new Error(JSON.stringify(reply));
  return JSON.parse(reply.body) as Record<string, unknown>;
}

describe("headers of a request that leaves", () => {
  test.each(["cookie", "cookie2", "proxy-authorization"])(
    "%s is removed with every service",
    async (name) => {
      const reply = await new TestSidecar().check({ headers: headers("accept", name, "x-other") });
      expect(removed(reply)).toEqual([name]);
    },
  );

  test("others stay, and nothing is removed that is not there", async () => {
    const reply = await new TestSidecar().check({ headers: headers("accept", "content-type") });
    expect(removed(reply)).toEqual([]);
  });
});

test("the agent's credentials in the query are removed, if they are there", async () => {
  const sidecar = new TestSidecar();
  sidecar.credentialQuery.push("api_key", "token", "token");
  const removedFrom = async (path: string): Promise<unknown> => {
    const reply = await sidecar.check({ path });
    return reply.kind === "ok" ? reply.removeQuery : reply;
  };
  expect(await removedFrom("/things?api_key=a&x=1&token=b")).toEqual(["api_key", "token"]);
  expect(await removedFrom("/things?x=1&token=b")).toEqual(["token"]);
  expect(await removedFrom("/things?x=1&tokens=b")).toEqual([]);
});

describe("a request that is malformed", () => {
  test("is refused, counted, and is not under way", async () => {
    const sidecar = new TestSidecar();
    const reply = await sidecar.check({ method: "GE T" });
    expect(reply).toMatchObject({
      kind: "denied",
      status: 400,
      headers: [
        ["content-type", "application/json"],
        ["x-svc-denied", "malformed_request"],
      ],
    });
    expect(body(reply)).toMatchObject({ code: "malformed_request", source: "svc" });
    expect(sidecar.authorizer.underWay).toBe(0);
    const metric = await sidecar.registry.getSingleMetric("svc_binding_malformed_total")?.get();
    expect(metric?.values[0]?.value).toBe(1);
  });

  test.each([
    ["http", "a port of HTTPS without TLS", { authority: `${HOST}:443` }, 400],
    ["http", "a port of HTTP", { authority: `${HOST}:80` }, 400],
    ["http", "a host that is none", { authority: "[::1]" }, 400],
    ["https", "a port of HTTP with TLS", { authority: `${HOST}:80` }, 400],
    ["https", "another server name", { serverName: "other.example" }, 421],
    ["https", "no server name", { serverName: "" }, 421],
    ["https", "no handshake that Envoy knows of", { serverName: undefined }, 421],
  ] as const)("over %s: %s", async (listener, _name, request, status) => {
    const reply = await new TestSidecar().check(request, listener);
    expect(reply).toMatchObject({ kind: "denied", status });
  });

  test.each(["", undefined, "other.example"])(
    "the plain listener has no server name to compare, whatever Envoy sends: %j",
    async (serverName) => {
      expect(await new TestSidecar().check({ serverName }, "http")).toMatchObject({ kind: "ok" });
    },
  );

  test("has a record and a log line, without its path and user information", async () => {
    const sidecar = new TestSidecar();
    const path = "/ghp_secret\\x";
    await sidecar.check({ path, authority: `me:ghp_secret@${HOST}`, method: "PO\x1bST" }, "http");
    const fields = {
      allowed: false,
      call: expect.any(String) as unknown,
      host: HOST,
      listener: "http",
      method: String.raw`PO\u{1b}ST`,
      phase: "request",
      reason: "The method is not a valid HTTP token (RFC 9110 section 5.6.2).",
      rule: "malformed_request",
      workload: "default/tester",
    };
    expect(sidecar.audit.events).toEqual([{ type: "SERVICE_CALL", fields }]);
    expect(sidecar.captured.lines).toMatchObject([{ ...fields, msg: "malformed request refused" }]);
    expect(JSON.stringify([sidecar.audit.events, sidecar.captured.lines])).not.toContain("secret");
  });

  test("so has one that Envoy refused itself", async () => {
    const sidecar = new TestSidecar();
    sidecar.authorizer.refusedByEnvoy({ status: 400, flags: ["downstreamProtocolError"] });
    expect(sidecar.audit.fields).toMatchObject([
      {
        allowed: false,
        flags: ["downstreamProtocolError"],
        reason: "Envoy refused the request itself (400).",
        rule: "malformed_request",
      },
    ]);
    const metric = await sidecar.registry.getSingleMetric("svc_binding_malformed_total")?.get();
    expect(metric?.values[0]?.value).toBe(1);
  });

  test("many of them have few records and lines", async () => {
    const sidecar = new TestSidecar();
    for (let i = 0; i < 1_000; i++) await sidecar.check({ method: "" });
    expect(sidecar.audit.events).toHaveLength(60);
    expect(sidecar.captured.lines).toHaveLength(60);
  });
});

describe("a denial", () => {
  test("tells the action, the resource and the rule", async () => {
    const sidecar = new TestSidecar({ deny: ["things:read"], allow: ["things:*"] });
    sidecar.resolution = {
      kind: "resolved",
      actions: [
        { action: "things:read", resources: [{ kind: "scoped", key: "projects", value: "p" }] },
      ],
    };
    expect(body(await sidecar.check())).toMatchObject({
      code: "action_denied",
      binding: "service",
      action: "things:read",
      resource: "p",
      rule: "policy.deny: things:read",
      allowed: ["things:*"],
    });
  });

  test("of a request that is not understood tells no action", async () => {
    const sidecar = new TestSidecar();
    sidecar.resolution = { kind: "unresolved", reason: "No", hint: "Yes" };
    const told = body(await sidecar.check());
    expect(told).toMatchObject({ code: "unresolved_action", message: "No. Yes." });
    expect(told).not.toHaveProperty("action");
    expect(told).not.toHaveProperty("resource");
  });

  test("of a host that is not bound names no binding", async () => {
    const request = { authority: "other.example", serverName: "other.example" };
    const told = body(await new TestSidecar().check(request));
    expect(told).toMatchObject({ code: "unknown_host" });
    expect(told).not.toHaveProperty("binding");
  });
});

describe("the log", () => {
  const messages = (sidecar: TestSidecar): unknown[] =>
    sidecar.captured.lines.map((line) => line["msg"]);

  test("has each request that leaves only where the Provider asks for it", async () => {
    const [quiet, telling] = [new TestSidecar(), new TestSidecar({}, { logRequests: true })];
    await quiet.check();
    await telling.check();
    expect(messages(quiet)).toEqual([]);
    expect(messages(telling)).toEqual(["service call"]);
  });

  test.each([
    ["warn", ["service call", "service call denied"]],
    ["error", []],
  ])("has them at the level %s too, if warnings are shown", async (level, expected) => {
    const telling = new TestSidecar({ deny: ["things:write"] }, { logRequests: true }, {}, level);
    await telling.check();
    telling.resolution = {
      kind: "resolved",
      actions: [{ action: "things:write", resources: [{ kind: "none" }] }],
    };
    await telling.check();
    expect(messages(telling)).toEqual(expected);
    const quiet = new TestSidecar({ deny: ["*"] }, {}, {}, level);
    await quiet.check();
    expect(messages(quiet)).toEqual([]);
  });
});

describe("calls under way", () => {
  const end = { status: 200, bytesSent: 1, bytesReceived: 2, flags: ["UF"] };

  test("are those that have left, until they end, once", async () => {
    const sidecar = new TestSidecar();
    await sidecar.check();
    const denying = new TestSidecar({ deny: ["*"] });
    await denying.check();
    expect([sidecar.authorizer.underWay, denying.authorizer.underWay]).toEqual([1, 0]);
    const id = sidecar.audit.fields[0]?.["call"] as string;
    sidecar.clock.advance(250);
    sidecar.authorizer.ended({ id: "another", ...end });
    expect(sidecar.authorizer.underWay).toBe(1);
    sidecar.authorizer.ended({ id, ...end });
    sidecar.authorizer.ended({ id, ...end });
    expect(sidecar.authorizer.underWay).toBe(0);
    expect(sidecar.audit.fields.slice(1)).toMatchObject([
      { phase: "response", status: 200, duration_ms: 250 },
    ]);
    const metric = await sidecar.registry.getSingleMetric("svc_binding_call_seconds")?.get();
    const sum = metric?.values.find(
      (value) => "metricName" in value && String(value.metricName).endsWith("_sum"),
    );
    expect(sum).toMatchObject({
      value: 0.25,
      labels: { binding: "service", action: "things:read", status: "200" },
    });
  });
});

describe("a call that was allowed and cannot be sent has a second record", () => {
  const records = (sidecar: TestSidecar): unknown => sidecar.audit.fields;
  const notSent = (code: string, status: number): unknown => [
    expect.objectContaining({ phase: "request", allowed: true }),
    {
      action: "things:read",
      binding: "service",
      call: expect.any(String) as unknown,
      code,
      duration_ms: 0,
      phase: "response",
      resource: undefined,
      sent: false,
      status,
      workload: "default/tester",
    },
  ];

  test("without a credential", async () => {
    const sidecar = new TestSidecar();
    sidecar.inject = () => {
      throw new InjectionError("There is no token of service at present.", 503);
    };
    expect(body(await sidecar.check())).toMatchObject({ code: "credential_unavailable" });
    expect(records(sidecar)).toEqual(notSent("credential_unavailable", 503));
    expect(sidecar.audit.fields[0]?.["call"]).toBe(sidecar.audit.fields[1]?.["call"]);
  });

  test("without an address", async () => {
    const sidecar = new TestSidecar();
    sidecar.upstream = undefined;
    expect(body(await sidecar.check())).toMatchObject({ code: "host_not_found" });
    expect(records(sidecar)).toEqual(notSent("host_not_found", 502));
  });

  test("by a defect, which still fails the request", async () => {
    const sidecar = new TestSidecar();
    sidecar.inject = () => Promise.reject(new TypeError("signing failed"));
    await expect(sidecar.check()).rejects.toThrow("signing failed");
    expect(records(sidecar)).toEqual(notSent("defect", 503));
    expect(sidecar.authorizer.underWay).toBe(0);
  });

  test("not one that was denied, or that could not be recorded", async () => {
    const denying = new TestSidecar({ deny: ["*"] });
    await denying.check();
    expect(denying.audit.fields).toHaveLength(1);
    const failing = new TestSidecar();
    failing.audit.outcome = "failed";
    failing.upstream = undefined;
    await failing.check();
    expect(failing.audit.fields.filter((fields) => fields["sent"] === false)).toEqual([]);
  });
});
