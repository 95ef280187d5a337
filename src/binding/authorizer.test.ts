/** Client text is stored bounded and printable, wherever it is stored. */
import { describe, expect, test } from "vitest";
import { encodeFields, MAX_FIELDS } from "../audit/chain/record.ts";
import { REFUSAL_LIMITS, REFUSALS_LEFT_OUT } from "../audit/refusals/refusals.ts";
import { clientText, clientTexts } from "../platform/client-text.ts";
import type { ResolvedAction } from "../providers/contract.ts";
import { TestSidecar } from "./testing.ts";

const LONG_PATH = `/${"p".repeat(20_000)}`;
const METHOD = "M".repeat(5_000);
const ACTION = `things:${"a".repeat(20_000)}\u001b[2J`;
const RESOURCE = `\u202e${"r".repeat(20_000)}`;

/** Maximum size of a record or log line of a request, in characters. */
const MOST = 64 * 1024;

const acting = (...resources: string[]): readonly ResolvedAction[] => [
  {
    action: ACTION,
    resources: resources.map((value) => ({ kind: "scoped", key: "projects", value })),
  },
];

describe("client text in audit records", () => {
  test("of a request that is allowed, and of its end", async () => {
    const sidecar = new TestSidecar();
    sidecar.resolution = { kind: "resolved", actions: acting(RESOURCE) };
    await sidecar.check({ method: METHOD, path: LONG_PATH });
    const [request] = sidecar.audit.fields;
    expect(request).toMatchObject({
      action: clientText(ACTION),
      resource: clientText(RESOURCE),
      method: clientText(METHOD),
      path: clientText(LONG_PATH),
    });
    sidecar.authorizer.ended({
      id: request?.["call"] as string,
      status: 200,
      bytesSent: 1,
      bytesReceived: 1,
      flags: [],
    });
    expect(sidecar.audit.fields[1]).toMatchObject({
      phase: "response",
      action: clientText(ACTION),
      resource: clientText(RESOURCE),
    });
    for (const fields of sidecar.audit.fields)
      expect(JSON.stringify(fields).length).toBeLessThan(2_000);
  });

  const actions = Array.from({ length: 5_000 }, (_, i) => `${i}${"\\".repeat(300)}`);
  const resources = Array.from({ length: 5_000 }, (_, i) => `${i}${"\n".repeat(300)}`);
  const acts = actions.map((action, i): ResolvedAction => ({
    action,
    resources: [{ kind: "scoped", key: "projects", value: resources[i] as string }],
  }));

  test("of a request that is denied many things on many resources", async () => {
    const sidecar = new TestSidecar({ deny: ["*"] });
    sidecar.resolution = { kind: "resolved", actions: acts };
    await sidecar.check();
    const [fields] = sidecar.audit.fields;
    expect(fields).toMatchObject({
      action: clientTexts(actions),
      resource: clientTexts(resources),
      rule: "policy.deny: *",
    });
    for (const told of [fields, sidecar.captured.lines[0]])
      expect(JSON.stringify(told).length).toBeLessThan(MOST);
  });

  test("of a request that leaves, many of them where it leaves, and few where it is over", async () => {
    const sidecar = new TestSidecar();
    sidecar.resolution = { kind: "resolved", actions: acts };
    await sidecar.check();
    const [request] = sidecar.audit.fields;
    expect(request).toMatchObject({
      action: clientTexts(actions, 1_000),
      resource: clientTexts(resources, 1_000),
    });
    // No input of an agent makes the chain omit the rest of the record.
    expect(encodeFields(request ?? {}).length).toBeLessThan(MAX_FIELDS);
    expect(encodeFields(request ?? {})).not.toContain("oversize");
    const id = request?.["call"] as string;
    sidecar.authorizer.ended({ id, status: 200, bytesSent: 1, bytesReceived: 1, flags: [] });
    expect(JSON.stringify(sidecar.audit.fields[1]).length).toBeLessThan(MOST);
  });
});

describe("client text in log lines", () => {
  test.each([
    ["a denial", "enforce", "service call denied"],
    ["a violation that is not blocked", "audit", "AUDIT (not blocked)"],
  ] as const)("of %s", async (_name, enforcement, message) => {
    const sidecar = new TestSidecar({ allow: ["books:*"] }, { enforcement });
    sidecar.resolution = { kind: "resolved", actions: acting(RESOURCE) };
    await sidecar.check({ method: METHOD, path: LONG_PATH });
    const [line] = sidecar.captured.lines;
    expect(line).toMatchObject({
      action: [clientText(ACTION)],
      resource: [clientText(RESOURCE)],
      method: clientText(METHOD),
      path: clientText(LONG_PATH),
    });
    expect(line?.["msg"]).toContain(message);
    expect(JSON.stringify(line).length).toBeLessThan(4_000);
    expect(JSON.stringify(line)).not.toMatch(/\\u001b|\u202e/);
  });
});

describe("client text in metric labels", () => {
  test("is cut and printable", async () => {
    const sidecar = new TestSidecar();
    sidecar.resolution = { kind: "resolved", actions: acting(RESOURCE) };
    await sidecar.check();
    const text = await sidecar.registry.metrics();
    expect(text).toContain(clientText(ACTION).replaceAll("\\", "\\\\"));
    for (const line of text.split("\n")) expect(line.length).toBeLessThan(600);
    expect(text).not.toContain("\u001b");
  });

  test("is of a bounded number: an agent that makes up actions makes up one label", async () => {
    const sidecar = new TestSidecar();
    for (let i = 0; i < 700; i += 1) {
      sidecar.resolution = {
        kind: "resolved",
        actions: [{ action: `things:${i}`, resources: [{ kind: "none" }] }],
      };
      await sidecar.check();
    }
    const metric = await sidecar.registry.getSingleMetric("svc_binding_decisions_total")?.get();
    expect(metric?.values.length).toBeLessThanOrEqual(201);
    expect(metric?.values.reduce((sum, { value }) => sum + value, 0)).toBe(700);
    expect(metric?.values.map(({ labels }) => labels["action"])).toContain("other");
  });
});

describe("denied requests", () => {
  const { caller, summaryMs } = REFUSAL_LIMITS;
  const denying = (): TestSidecar => new TestSidecar({ deny: ["*"] });

  test("wait for no disk, and are denied for what they are while nothing can be recorded", async () => {
    const sidecar = denying();
    sidecar.audit.hold = true;
    expect(await sidecar.check()).toMatchObject({ kind: "denied", status: 403 });
    expect(sidecar.audit.awaited).toBe(0);
    expect(sidecar.audit.fields).toMatchObject([{ allowed: false, phase: "request" }]);
    sidecar.audit.refusing = true;
    sidecar.audit.state = "failing";
    expect(await sidecar.check()).toMatchObject({ kind: "denied", status: 403 });
  });

  test("cannot fill the disk, nor the log: the rest of many is one record", async () => {
    const sidecar = denying();
    for (let i = 0; i < caller.burst + 40; i += 1) await sidecar.check();
    expect(sidecar.audit.events).toHaveLength(caller.burst);
    expect(sidecar.captured.lines).toHaveLength(caller.burst);
    await sidecar.clock.advanceAndSettle(summaryMs);
    expect(sidecar.audit.events.at(-1)).toMatchObject({
      type: REFUSALS_LEFT_OUT,
      fields: {
        of: "SERVICE_CALL",
        count: 40,
        callers: { "default/tester": 40 },
        codes: { action_denied: 40 },
      },
    });
  });

  test("do not keep requests that are allowed from the record", async () => {
    const sidecar = new TestSidecar({ deny: ["things:write"] });
    const doing = (action: string): void => {
      sidecar.resolution = { kind: "resolved", actions: [{ action, resources: [] }] };
    };
    doing("things:write");
    for (let i = 0; i < 1_000; i += 1) await sidecar.check();
    doing("things:read");
    for (let i = 0; i < 1_000; i += 1) await sidecar.check();
    expect(sidecar.audit.fields.filter(({ allowed }) => allowed === true)).toHaveLength(1_000);
  });

  test("a violation that is not blocked is on record each time: it left", async () => {
    const sidecar = new TestSidecar({ deny: ["*"] }, { enforcement: "audit" });
    for (let i = 0; i < caller.burst + 40; i += 1) await sidecar.check();
    expect(sidecar.audit.events).toHaveLength(caller.burst + 40);
    expect(sidecar.audit.awaited).toBe(caller.burst + 40);
  });
});

describe("while the chain takes no new work", () => {
  test("nothing leaves, and nothing is put to a chain that would lose it", async () => {
    const sidecar = new TestSidecar();
    sidecar.audit.refusing = true;
    sidecar.audit.state = "full";
    const reply = await sidecar.check();
    expect(reply).toMatchObject({ kind: "denied", status: 503 });
    expect(JSON.stringify(reply)).toContain("audit_unavailable");
    expect(sidecar.audit.events).toEqual([]);
    sidecar.audit.refusing = false;
    sidecar.audit.state = "ok";
    expect(await sidecar.check()).toMatchObject({ kind: "ok" });
    await sidecar.refusals.close();
    expect(sidecar.audit.events.at(-1)).toMatchObject({
      type: REFUSALS_LEFT_OUT,
      fields: { codes: { audit_unavailable: 1 }, reasons: { space: 1 } },
    });
  });

  test("a record that is lost in between denies what it was for", async () => {
    const sidecar = new TestSidecar();
    sidecar.audit.outcome = "failed";
    expect(await sidecar.check()).toMatchObject({ kind: "denied", status: 503 });
    sidecar.audit.outcome = "lost";
    expect(await sidecar.check()).toMatchObject({ kind: "ok" });
  });
});
