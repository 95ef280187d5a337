import { Registry } from "prom-client";
import { beforeEach, describe, expect, test } from "vitest";
import type { Cost } from "../../pricing/price-book.ts";
import type { Attempt, Call } from "../call.ts";
import type { Usage } from "../dialects/dialect.ts";
import { LlmMetrics } from "./metrics.ts";
import type { Settlement } from "./settlement.ts";

const USAGE: Usage = {
  inputTokens: 10,
  cachedInputTokens: 4,
  cacheWrite5mTokens: 0,
  cacheWrite1hTokens: 0,
  outputTokens: 7,
};
/** In picodollars. */
const COST: Cost = {
  input: 2_000_000_000_000n,
  cachedInput: 500_000_000_000n,
  output: 3_000_000_000_000n,
  total: 5_500_000_000_000n,
};
const SETTLEMENT: Settlement = {
  usage: USAGE,
  usageKind: "exact",
  cost: COST,
  costUsd: "5.5",
  durationMs: 1_500,
  lost: [],
};

let registry: Registry;
let metrics: LlmMetrics;

beforeEach(() => {
  registry = new Registry();
  metrics = new LlmMetrics(registry);
});

type Tried = readonly [provider: string, model: string, failure?: Partial<Attempt["failure"]>];

interface Made {
  readonly tried?: readonly Tried[];
  readonly stream?: boolean;
  readonly firstByteAt?: number | undefined;
}

/** A call with these attempts, in order. */
function made({ tried = [["openai", "m"]], stream = false, firstByteAt }: Made = {}): Call {
  const attempts = tried.map(([provider, model, failure]) => ({
    target: { provider: { name: provider }, model },
    ...(failure === undefined ? {} : { failure }),
  }));
  const [first, last] = [attempts[0], attempts.at(-1)].map((attempt) => {
    const { provider, model } = attempt?.target ?? { provider: { name: "" }, model: "" };
    return `${provider.name}/${model}`;
  });
  return {
    request: {
      permit: { caller: { workload: "default/tester" } },
      facts: { stream },
      startedAt: 1_000,
    },
    answer: { firstByteAt },
    attempts,
    target: attempts.at(-1)?.target,
    retries: attempts.length - 1,
    fellBackFrom: first === last ? undefined : first,
  } as unknown as Call;
}

function settle(call: Call, settlement: Partial<Settlement> = {}): void {
  const outcome = { status: 200, end: "completed", code: undefined } as const;
  metrics.settled({ call, outcome, settlement: { ...SETTLEMENT, ...settlement } });
}

/** Values of a metric with their labels, in the order of its label names. */
async function values(name: string): Promise<readonly string[]> {
  const metric = await registry.getSingleMetric(name)?.get();
  return (metric?.values ?? [])
    .filter((value) => !("metricName" in value) || String(value.metricName).endsWith("_sum"))
    .map(({ labels, value }) => [...Object.values(labels), value].join(" "));
}

const TARGET = "default/tester m openai";

describe("a settled call", () => {
  test("is counted by its outcome, and its duration in seconds", async () => {
    settle(made());
    expect(await values("svc_llm_requests_total")).toEqual([`${TARGET} 200 completed 1`]);
    expect(await values("svc_llm_duration_seconds")).toEqual([`${TARGET} 1.5`]);
    expect(await values("svc_llm_retries_total")).toEqual([]);
    expect(await values("svc_llm_fallbacks_total")).toEqual([]);
    expect(await values("svc_llm_unpriced_total")).toEqual([]);
  });

  test("counts its tokens and its cost by kind", async () => {
    settle(made());
    expect(await values("svc_llm_tokens_total")).toEqual([
      `${TARGET} input exact 10`,
      `${TARGET} cached_input exact 4`,
      `${TARGET} output exact 7`,
    ]);
    expect(await values("svc_cost_usd_total")).toEqual([
      "default/tester m input 2",
      "default/tester m cached_input 0.5",
      "default/tester m output 3",
    ]);
  });

  test("without cached input has none of its kind", async () => {
    settle(made(), { usage: { ...USAGE, cachedInputTokens: 0 }, usageKind: "estimated" });
    expect(await values("svc_llm_tokens_total")).toEqual([
      `${TARGET} input estimated 10`,
      `${TARGET} output estimated 7`,
    ]);
    expect(await values("svc_cost_usd_total")).toEqual([
      "default/tester m input 2",
      "default/tester m output 3",
    ]);
  });

  test("without a price counts its tokens, and that it has no price", async () => {
    settle(made(), { cost: undefined });
    expect(await values("svc_llm_tokens_total")).toHaveLength(3);
    expect(await values("svc_llm_unpriced_total")).toEqual(["default/tester m 1"]);
    expect(await values("svc_cost_usd_total")).toEqual([]);
  });

  test("that used nothing counts as a request alone", async () => {
    settle(made(), { usage: undefined, cost: undefined });
    expect(await values("svc_llm_requests_total")).toHaveLength(1);
    expect(await values("svc_llm_tokens_total")).toEqual([]);
    expect(await values("svc_llm_unpriced_total")).toEqual([]);
  });

  test.each<[string, Made, readonly string[]]>([
    ["a stream", { stream: true, firstByteAt: 1_250 }, [`${TARGET} 0.25`]],
    ["a stream without a byte", { stream: true }, []],
    ["a whole answer", { stream: false, firstByteAt: 1_250 }, []],
  ])("measures the time to the first byte of %s", async (_name, call, expected) => {
    settle(made(call));
    expect(await values("svc_llm_time_to_first_token_seconds")).toEqual(expected);
  });
});

describe("attempts", () => {
  test("that failed are counted by provider and status, the one that answered is not", async () => {
    const tried: readonly Tried[] = [
      ["openai", "m", { status: 503, flags: "" }],
      ["openai", "m", { status: 0, flags: "upstreamRequestTimeout" }],
      ["openai", "m", { status: 0, flags: "" }],
      ["openai", "m"],
    ];
    settle(made({ tried }));
    expect(await values("svc_llm_retries_total")).toEqual([
      "default/tester openai 503 1",
      "default/tester openai upstreamRequestTimeout 1",
      "default/tester openai none 1",
    ]);
    expect(await values("svc_llm_fallbacks_total")).toEqual([]);
  });

  test("at another provider are a fallback", async () => {
    const tried: readonly Tried[] = [
      ["openai", "m", { status: 503, flags: "" }],
      ["anthropic", "c"],
    ];
    settle(made({ tried }));
    expect(await values("svc_llm_fallbacks_total")).toEqual([
      "default/tester openai/m anthropic/c 1",
    ]);
    expect(await values("svc_llm_requests_total")).toEqual([
      "default/tester c anthropic 200 completed 1",
    ]);
  });

  test("of a single failed call are no retry", async () => {
    settle(made({ tried: [["openai", "m", { status: 503, flags: "" }]] }));
    expect(await values("svc_llm_retries_total")).toEqual([]);
  });

  test("that were lost count where they were sent, as an estimate", async () => {
    const call = made({
      tried: [
        ["openai", "m", { status: 0, flags: "" }],
        ["anthropic", "c"],
      ],
    });
    const [attempt] = call.attempts;
    if (attempt === undefined) throw new Error("no attempt");
    settle(call, { usage: undefined, lost: [{ attempt, usage: USAGE, cost: undefined }] });
    expect(await values("svc_llm_tokens_total")).toEqual([
      `${TARGET} input estimated 10`,
      `${TARGET} cached_input estimated 4`,
      `${TARGET} output estimated 7`,
    ]);
    expect(await values("svc_llm_unpriced_total")).toEqual(["default/tester m 1"]);
  });
});

test("names of models are a bounded number of labels for each provider", async () => {
  for (let model = 0; model < 150; model++) settle(made({ tried: [["openai", `m${model}`]] }));
  expect((await values("svc_llm_duration_seconds")).length).toBeLessThanOrEqual(101);
});

test("a refused request is counted by its code", async () => {
  metrics.refused("unknown_model");
  metrics.refused("unknown_model");
  expect(await values("svc_llm_refused_total")).toEqual(["unknown_model 2"]);
});
