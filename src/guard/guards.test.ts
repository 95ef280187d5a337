import { Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { RefusalLog } from "../audit/refusals/refusals.ts";
import { CapturedLog, FakeClock } from "../platform/testing.ts";
import type { AgentPolicy, GuardPolicy } from "../policy/snapshot.ts";
import type { ClassifierVerdict } from "./classifier-client.ts";
import type { ScannedText } from "./finding.ts";
import { Guards } from "./guards.ts";
import { GuardMetrics } from "./metrics.ts";
import { GuardTrail } from "./trail.ts";

type Changes = Partial<Omit<GuardPolicy, "scan">> & {
  readonly scan?: Partial<GuardPolicy["scan"]>;
};

function guard(binding: string, { scan, ...changes }: Changes = {}): GuardPolicy {
  return {
    binding,
    classifier: {
      id: binding,
      type: "stub",
      protocol: "classify",
      url: "http://classifier/classify",
      model: undefined,
      header: undefined,
      problem: undefined,
    },
    thresholds: { injection: 0.5, jailbreak: 0.5 },
    enforcement: "enforce",
    timeoutMs: 1_000,
    maxPayloadChars: 2_000,
    ...changes,
    scan: { prompts: true, responses: false, toolResults: "none", ...scan },
  };
}

function agent(guards: readonly GuardPolicy[]): AgentPolicy {
  return {
    kind: "agent",
    namespace: "team",
    name: "a",
    workload: "team/a",
    limits: {
      requestsPerMinute: undefined,
      maxConcurrentRequests: undefined,
      maxTokensPerDay: undefined,
      maxTokensPerRequest: undefined,
      maxMicroUsdPerDay: undefined,
    },
    grants: [],
    guards,
    resolveModel: () => ({ kind: "unknown" }),
  };
}

const scores = (injection: number, jailbreak = 0): ClassifierVerdict => ({
  kind: "scores",
  scores: { benign: 1 - Math.max(injection, jailbreak), injection, jailbreak },
});

const prompt = (text: string): ScannedText => ({
  kind: "prompt",
  text,
  tool: undefined,
  param: "messages[0].content",
  source: "user",
});

const result = (text: string, tool: string | undefined, isPrompt = false): ScannedText => ({
  kind: "tool_result",
  text,
  tool,
  param: "messages[1].content",
  source: "tool:1",
  isPrompt,
});

class World {
  readonly clock = new FakeClock();
  readonly registry = new Registry();
  readonly records: {
    readonly type: string;
    readonly fields: Readonly<Record<string, unknown>>;
  }[] = [];
  /** Verdict by id of the classifier and text. */
  judge: (id: string, text: string) => ClassifierVerdict | Promise<ClassifierVerdict> = (_, text) =>
    scores(text.includes("evil") ? 0.9 : 0);
  readonly asked: string[] = [];
  readonly guards: Guards;

  constructor() {
    const sink = {
      append: (event: World["records"][number]) => void this.records.push(event),
      refusing: false,
      state: "ok" as const,
    };
    const { clock, registry } = this;
    const { log } = new CapturedLog();
    const refusals = new RefusalLog({ sink, of: "GUARD", clock, log, registry });
    this.guards = new Guards({
      classifiers: {
        ask: ({ id }, text) => {
          this.asked.push(text);
          return this.judge(id, text);
        },
      },
      trail: new GuardTrail({ sink, refusals }),
      metrics: new GuardMetrics(registry),
      clock,
    });
  }

  scan(guards: readonly GuardPolicy[], texts: readonly ScannedText[], canBlock = true) {
    const call = { caller: agent(guards), callId: "c1", address: "10.0.0.1", model: "p/m" };
    return this.guards.scan({ call, texts, canBlock });
  }

  async checks(): Promise<readonly string[]> {
    const metric = await this.registry.getSingleMetric("svc_guard_checks_total")?.get();
    return (metric?.values ?? []).map(
      ({ labels, value }) => `${labels["label"]} ${labels["action"]} ${value}`,
    );
  }
}

describe("what is scanned", () => {
  const everything = [
    prompt("p"),
    result("r", "fetch"),
    { ...prompt("a"), kind: "response" },
  ] as const;
  test.each<[string, Partial<GuardPolicy["scan"]>, readonly string[]]>([
    ["prompts", {}, ["p"]],
    ["nothing", { prompts: false }, []],
    ["results of all tools", { prompts: false, toolResults: "all" }, ["r"]],
    ["results of a tool", { prompts: false, toolResults: new Set(["fetch"]) }, ["r"]],
    ["results of another tool", { prompts: false, toolResults: new Set(["Fetch"]) }, []],
    ["answers", { prompts: false, responses: true }, ["a"]],
  ])("%s", async (_, scan, texts) => {
    const world = new World();
    await world.scan([guard("g", { scan })], everything);
    expect(world.asked).toEqual(texts);
  });

  test("a result whose tool cannot be told is of any tool", async () => {
    const world = new World();
    const scan = { prompts: false, toolResults: new Set(["fetch"]) };
    await world.scan([guard("g", { scan })], [result("r", undefined)]);
    expect(world.asked).toEqual(["r"]);
  });

  test("a result that is part of the prompt is scanned as one, unless it is scanned as a result", async () => {
    const world = new World();
    const texts = [result("evil", "fetch", true)];
    expect(await world.scan([guard("g")], texts)).toMatchObject({ where: "prompt" });
    const scan = { toolResults: "all" } as const;
    expect(await world.scan([guard("g", { scan })], texts)).toMatchObject({
      where: "tool_result",
      tool: "fetch",
    });
  });

  test("nothing to scan is no check", async () => {
    const world = new World();
    expect(await world.scan([guard("g")], [result("evil", "fetch")])).toBeUndefined();
    expect(await world.checks()).toEqual([]);
  });
});

describe("a decision", () => {
  test.each<[string, GuardPolicy["enforcement"], boolean, string | undefined, string]>([
    ["enforce blocks", "enforce", true, "injection", "GUARD.VIOLATION_ENFORCE"],
    ["audit forwards", "audit", true, undefined, "GUARD.VIOLATION_AUDIT"],
    ["what was forwarded is recorded", "enforce", false, undefined, "GUARD.VIOLATION_AUDIT"],
  ])("%s", async (_, enforcement, canBlock, label, type) => {
    const world = new World();
    const finding = await world.scan([guard("g", { enforcement })], [prompt("evil")], canBlock);
    expect(finding?.label).toBe(label);
    expect(world.records.map((record) => record.type)).toEqual([type]);
  });

  test("of several guards each is recorded, and the highest score of those that enforce decides", async () => {
    const world = new World();
    world.judge = (id) => scores({ a: 0.6, b: 0.8, c: 0.99, d: 0 }[id] ?? 0);
    const finding = await world.scan(
      [guard("a"), guard("b"), guard("c", { enforcement: "audit" }), guard("d")],
      [prompt("evil")],
    );
    expect(finding?.guard.binding).toBe("b");
    expect(world.records.map(({ type, fields }) => [type, fields["binding"]])).toEqual([
      ["GUARD.VIOLATION_ENFORCE", "a"],
      ["GUARD.VIOLATION_ENFORCE", "b"],
      ["GUARD.VIOLATION_AUDIT", "c"],
    ]);
    expect(await world.checks()).toEqual([
      "injection block 2",
      "injection audit 1",
      "benign allow 1",
    ]);
    expect([...world.guards.counts]).toEqual(
      ["a", "b", "c", "d"].map((name) => [
        `team/${name}`,
        {
          benign: 0,
          injection: 0,
          jailbreak: 0,
          unavailable: 0,
          [name === "d" ? "benign" : "injection"]: 1,
        },
      ]),
    );
  });

  test.each([
    ["below", { injection: 0.7, jailbreak: 0.7 }, undefined],
    ["at the threshold", { injection: 0.6, jailbreak: 1 }, "injection"],
    ["the higher of two", { injection: 0.1, jailbreak: 0.1 }, "jailbreak"],
  ])("%s", async (_, thresholds, label) => {
    const world = new World();
    world.judge = () => scores(0.6, 0.65);
    expect((await world.scan([guard("g", { thresholds })], [prompt("x")]))?.label).toBe(label);
  });
});

describe("a classifier without a verdict", () => {
  const FAILED: ClassifierVerdict = { kind: "unavailable", failure: "refused" };

  test("blocks nothing, is recorded, and is not benign", async () => {
    const world = new World();
    world.judge = () => FAILED;
    expect(await world.scan([guard("g")], [prompt("evil")])).toBeUndefined();
    expect(world.records).toMatchObject([
      { type: "GUARD.UNAVAILABLE", fields: { binding: "g", reason: "refused", pieces: 1 } },
    ]);
    expect(await world.checks()).toEqual(["unavailable allow 1"]);
  });

  test("for one text does not hide what another one contains", async () => {
    const world = new World();
    world.judge = (_, text) => (text === "evil" ? scores(0.9) : FAILED);
    const texts = [prompt("evil"), { ...prompt("x"), source: "system" }];
    expect(await world.scan([guard("g")], texts)).toMatchObject({ label: "injection" });
  });

  test("that hangs costs its time once, and what was judged by then decides", async () => {
    const world = new World();
    world.judge = (_, text) =>
      text === "evil" ? scores(0.9) : new Promise<ClassifierVerdict>(() => undefined);
    const texts = [prompt("evil"), ...many(20).map((text) => ({ ...prompt(text), source: text }))];
    const scanned = world.scan([guard("g", { enforcement: "audit" })], texts);
    expect(world.asked).toHaveLength(4);
    expect(world.clock.pending).toEqual([1_000]);
    world.clock.advance(1_000);
    expect(await scanned).toBeUndefined();
    expect(world.records).toMatchObject([{ fields: { reason: "timeout", pieces: 21 } }]);
    expect(world.asked).toHaveLength(4);
  });

  const many = (count: number): string[] => Array.from({ length: count }, (_, i) => `text ${i}`);
});

describe("a record", () => {
  const recorded = async (
    changes: Changes,
    text: ScannedText,
  ): Promise<World["records"][number]> => {
    const world = new World();
    await world.scan([guard("strict", changes)], [text]);
    return world.records[0] as World["records"][number];
  };

  test("has the fields of the contract, sorted, and a payload without secrets", async () => {
    const scan = { toolResults: "all" } as const;
    const text = result("evil: mail bob@example.com", "fetch");
    const { fields } = await recorded({ scan }, text);
    expect(fields).toEqual({
      access_key: undefined,
      asked: "p/m",
      binding: "strict",
      call: "c1",
      classifier: "stub",
      client_ip: "10.0.0.1",
      flagged: 1,
      label: "injection",
      param: "messages[1].content",
      payload: "evil: mail [REDACTED:email]",
      score: 0.9,
      source: undefined,
      tool: "fetch",
      where: "tool_result",
      workload: "team/a",
    });
    expect(Object.keys(fields)).toEqual(Object.keys(fields).sort());
  });

  test.each<[string, Changes, string | undefined]>([
    ["absent where it is not saved", { maxPayloadChars: undefined }, undefined],
    ["cut to its length", { maxPayloadChars: 6 }, "evil: …"],
    ["empty", { maxPayloadChars: 0 }, "…"],
  ])("the payload is %s", async (_, changes, payload) => {
    const { fields } = await recorded(changes, prompt("evil: a long text"));
    expect(fields["payload"]).toBe(payload);
  });

  test("a secret across the edge of a piece is not in the payload", async () => {
    const secret = `ghp_${"Ab3dE6".repeat(6)}`;
    const text = `${"word ".repeat(1_636)}${secret} ${"evil ".repeat(2_000)}`;
    const { fields } = await recorded({ enforcement: "audit" }, prompt(text));
    const payload = String(fields["payload"]);
    for (let at = 0; at + 8 <= secret.length; at += 4)
      expect(payload).not.toContain(secret.slice(at, at + 8));
  });
});
