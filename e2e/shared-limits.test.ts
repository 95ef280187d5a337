/** Two gateways, one Redis: at the edge of each limit, many callers at once never get over it. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Ask, begin, type Exchange, type Target } from "./support/client.ts";
import { RedisServer } from "./support/redis.ts";
import { accessKeyYaml, agentYaml, providerYaml, rawKey } from "./support/resources.ts";
import { Stack, svc } from "./support/stack.ts";
import { Vendor } from "./support/vendors.ts";
import { Gate, until } from "./support/wait.ts";

const CALLERS = 200;

/** What the provider says that each call used: within what was reserved for it. */
const USED = { input: 10, output: 40 };
const TOKENS = USED.input + USED.output;

let redis: RedisServer;
let vendor: Vendor;
let stacks: readonly Stack[];

const AGENTS: Readonly<Record<string, Record<string, number>>> = {
  rpm: { requestsPerMinute: 50 },
  concurrent: { maxConcurrentRequests: 20 },
  tokens: { maxTokensPerDay: 2_000 },
  cost: { maxCostPerDayUSD: 0.01 },
};

beforeAll(async () => {
  redis = await RedisServer.start();
  vendor = await Vendor.start("openai");
  const open = (maxTokensPerDay?: number): { spec: object } => ({ spec: { externalAccess: { enabled: true, ...(maxTokensPerDay !== undefined && { maxTokensPerDay }) } } });
  const files: Record<string, string> = {
    "open.yaml": providerYaml("open", vendor, open() as { spec: Record<string, unknown> }),
    "budget.yaml": providerYaml("budget", vendor, open(2_000) as { spec: Record<string, unknown> }),
    "requests.yaml": accessKeyYaml("requests", "open", { limits: { maxRequestsPerDay: 30 } }),
    "spender.yaml": accessKeyYaml("spender", "open", { limits: { maxTokensPerDay: 2_000 } }),
    "one.yaml": accessKeyYaml("one", "budget"),
    "other.yaml": accessKeyYaml("other", "budget"),
  };
  for (const [name, limits] of Object.entries(AGENTS)) files[`agent-${name}.yaml`] = agentYaml(name, ["open/*"], limits);
  const start = async (): Promise<Stack> => Stack.start({ files, args: ["--redis-url", redis.url, "--concurrency", "1"] });
  stacks = [await start(), await start()];
});

afterAll(async () => {
  await Promise.all((stacks ?? []).map(async (stack) => stack.stop()));
  await vendor?.close();
  await redis?.stop();
});

/** A caller at each gateway, in turn. */
type CallerAt = (stack: Stack, turn: number) => Promise<Target & { readonly model: string }>;

const asAgent =
  (name: string): CallerAt =>
  async (stack) => ({ port: stack.port, token: await stack.token(name), model: "open/gpt-5" });

const asKey =
  (...names: string[]): CallerAt =>
  async (stack, turn) => ({ port: stack.externalPort, prefix: "/ext", token: rawKey(names[turn % names.length] as string), model: "gpt-5" });

interface Rush {
  /** Requests that wait at the provider. */
  readonly inside: readonly Exchange[];
  readonly refused: readonly { readonly status: number; readonly message: string }[];
  /** Lets the provider answer. */
  readonly gate: Gate;
}

/** All at once on both gateways; the provider keeps everyone who gets through. */
async function rush(caller: CallerAt, callers = CALLERS): Promise<Rush> {
  const gate = new Gate();
  vendor.reset();
  vendor.always(async (request, response) => {
    await gate.pass();
    if (failing) return vendor.fails({ status: 400, message: "no" })(request, response);
    return vendor.says({ text: ["ok"], usage: USED })(request, response);
  });
  const targets = await Promise.all(Array.from({ length: callers }, async (_, i) => caller(stacks[i % 2] as Stack, i >> 1)));
  const exchanges = targets.map((target) => begin(target, { dialect: "openai", model: target.model, body: { max_tokens: USED.output } } satisfies Ask));
  const refused: { exchange: Exchange; status: number; message: string }[] = [];
  const note = async (exchange: Exchange): Promise<void> => {
    const answer = await exchange.answer;
    if (answer.status === 429) refused.push({ exchange, status: answer.status, message: answer.message });
  };
  // A caller that leaves rejects: it was let in.
  for (const exchange of exchanges) note(exchange).catch(() => {});
  await until(() => vendor.requests.length + refused.length === callers, { timeoutMs: 30_000, what: "every caller to be let in or refused" });
  return { inside: exchanges.filter((exchange) => !refused.some((each) => each.exchange === exchange)), refused, gate };
}

let failing = false;

async function finish({ gate, inside }: Rush): Promise<void> {
  gate.open();
  const answers = await Promise.all(inside.map(async (exchange) => exchange.answer));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([failing ? 400 : 200]));
}

interface Usage {
  readonly tokensToday: number;
  readonly requestsToday: number;
  readonly costTodayUSD?: number;
  readonly inFlight?: number;
}

/** As each gateway's command line shows it. */
async function usage(kind: string, name: string): Promise<readonly Usage[]> {
  return Promise.all(
    stacks.map(async (stack) => {
      const { stdout } = await svc(["get", kind, name, "-o", "json", "--state-dir", stack.stateDir]);
      return (JSON.parse(stdout) as { status: Usage }).status;
    }),
  );
}

async function settledAs(kind: string, name: string, expected: Partial<Usage>): Promise<void> {
  await until(
    async () => (await usage(kind, name)).every((each) => Object.entries(expected).every(([field, value]) => each[field as keyof Usage] === value)),
    { what: `${kind} ${name} to have used ${JSON.stringify(expected)}` },
  );
}

/** From a refusal's words: what one call was reserved as. */
function reservedEach({ refused }: Rush): number {
  return Number(/up to ([\d.]+)/.exec(refused[0]?.message ?? "")?.[1]);
}

test("requestsPerMinute", async () => {
  const crowd = await rush(asAgent("rpm"));
  expect(crowd.inside).toHaveLength(50);
  expect(new Set(crowd.refused.map(({ status }) => status))).toEqual(new Set([429]));
  await finish(crowd);
  await settledAs("agent", "rpm", { requestsToday: 50, tokensToday: 50 * TOKENS });
});

test("maxConcurrentRequests, whose places are free again after answers, errors and clients that leave", async () => {
  const crowd = await rush(asAgent("concurrent"));
  expect(crowd.inside).toHaveLength(20);
  await finish(crowd);
  await settledAs("agent", "concurrent", { requestsToday: 20, inFlight: 0 });
  failing = true;
  const unlucky = await rush(asAgent("concurrent"));
  expect(unlucky.inside).toHaveLength(20);
  await finish(unlucky);
  failing = false;
  await settledAs("agent", "concurrent", { requestsToday: 20, tokensToday: 20 * TOKENS, inFlight: 0 });
  const leaving = await rush(asAgent("concurrent"));
  expect(leaving.inside).toHaveLength(20);
  for (const exchange of leaving.inside) exchange.leave();
  await settledAs("agent", "concurrent", { inFlight: 0 });
  leaving.gate.open();
  const last = await rush(asAgent("concurrent"));
  expect(last.inside).toHaveLength(20);
  await finish(last);
});

describe.each<[string, CallerAt, string, string, number]>([
  ["an agent's maxTokensPerDay", asAgent("tokens"), "agent", "tokens", 2_000],
  ["a key's maxTokensPerDay", asKey("spender"), "access-key", "spender", 2_000],
  ["a provider's maxTokensPerDay, through two keys", asKey("one", "other"), "model-provider", "budget", 2_000],
])("%s", (_name, caller, kind, name, limit) => {
  test("never over, everything back after failures, exact after settling, and then the rest", async () => {
    failing = true;
    const unlucky = await rush(caller);
    const each = reservedEach(unlucky);
    expect(each).toBeGreaterThan(USED.output);
    expect(unlucky.inside).toHaveLength(Math.floor(limit / each));
    await finish(unlucky);
    failing = false;
    await settledAs(kind, name, { tokensToday: 0, requestsToday: 0 });
    let used = 0;
    for (let inside = Math.floor(limit / each); inside > 0; inside = Math.floor((limit - used) / each)) {
      const crowd = await rush(caller, 100);
      expect(crowd.inside).toHaveLength(inside);
      await finish(crowd);
      used += inside * TOKENS;
      await settledAs(kind, name, { tokensToday: used, requestsToday: used / TOKENS });
    }
    expect(used).toBeLessThanOrEqual(limit);
    expect(used).toBeGreaterThan(limit - each);
  });
});

test("a key's maxRequestsPerDay", async () => {
  failing = true;
  const unlucky = await rush(asKey("requests"));
  expect(unlucky.inside).toHaveLength(30);
  await finish(unlucky);
  failing = false;
  await settledAs("access-key", "requests", { requestsToday: 0 });
  const crowd = await rush(asKey("requests"));
  expect(crowd.inside).toHaveLength(30);
  await finish(crowd);
  await settledAs("access-key", "requests", { requestsToday: 30 });
  expect((await rush(asKey("requests"), 20)).inside).toHaveLength(0);
});

test("an agent's maxCostPerDayUSD", async () => {
  const crowd = await rush(asAgent("cost"));
  const each = reservedEach(crowd);
  expect(each).toBeGreaterThan(0);
  expect(crowd.inside).toHaveLength(Math.floor(Math.round(0.01 * 1e6) / Math.round(each * 1e6)));
  await finish(crowd);
  const [first] = await until(
    async () => {
      const [one, other] = await usage("agent", "cost");
      return one?.requestsToday === crowd.inside.length && one.costTodayUSD === other?.costTodayUSD ? [one] : undefined;
    },
    { what: "the cost on both" },
  );
  const cost = first?.costTodayUSD ?? 0;
  expect(cost).toBeGreaterThan(0);
  expect(cost).toBeLessThanOrEqual(0.01);
});
