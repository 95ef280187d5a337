/**
 * Every refusal of a caller, in each dialect, through the real Envoy. The table is that of
 * docs/external.md: a row without a case here, or a case without a row, fails.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, begin, type Exchange, type Target } from "../support/client.ts";
import { ROOT } from "../support/build.ts";
import { accessKeyYaml, agentYaml, providerYaml, rawKey } from "../support/resources.ts";
import { Stack } from "../support/stack.ts";
import { DIALECTS, type DialectName, Vendor } from "../support/vendors.ts";
import { Gate, until } from "../support/wait.ts";

/** Any loopback address can be used as a client; this one is the trusted proxy. */
const PROXY = "127.0.0.9";
const STRANGER = "127.0.0.8";
const NOW = Date.now();
const ago = (ms: number): string => new Date(NOW - ms).toISOString();
const ahead = (ms: number): string => new Date(NOW + ms).toISOString();
const DAY_MS = 86_400_000;

let stack: Stack;
let vendor: Vendor;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  vendor = await Vendor.start("openai");
  const external = { externalAccess: { enabled: true } };
  const agents: Record<string, Record<string, number>> = {
    plain: {},
    rpm: { requestsPerMinute: 1 },
    concurrent: { maxConcurrentRequests: 1 },
    daily: { maxTokensPerDay: 1 },
    request: { maxTokensPerRequest: 1 },
    cost: { maxCostPerDayUSD: 0 },
  };
  const files: Record<string, string> = {
    "open.yaml": providerYaml("open", vendor, {
      spec: { ...external, deniedModels: ["secret-*"] },
    }),
    "closed.yaml": providerYaml("closed", vendor),
    "spent.yaml": providerYaml("spent", vendor, {
      spec: { externalAccess: { enabled: true, maxTokensPerDay: 0 } },
    }),
    "key.yaml": accessKeyYaml("key", "open"),
    "revoked.yaml": accessKeyYaml("revoked", "open", { revoked: true }),
    "expired.yaml": accessKeyYaml("expired", "open", { expiresAt: ago(1_000) }),
    "rotated.yaml": accessKeyYaml("rotated", "open", {
      keySHA256: "a".repeat(64),
      previous: { keySHA256: hashOf("rotated"), expiresAt: ago(1_000) },
    }),
    "outsider.yaml": accessKeyYaml("outsider", "closed"),
    "narrow.yaml": accessKeyYaml("narrow", "open", {
      restrictions: { allowedModels: ["gpt-5", "secret-model"] },
    }),
    "office.yaml": accessKeyYaml("office", "open", {
      restrictions: { allowedCIDRs: ["198.51.100.0/24"] },
    }),
    "slow.yaml": accessKeyYaml("slow", "open", { limits: { requestsPerMinute: 0 } }),
    "used.yaml": accessKeyYaml("used", "open", { limits: { maxRequestsPerDay: 0 } }),
    "dry.yaml": accessKeyYaml("dry", "open", { limits: { maxTokensPerDay: 0 } }),
    "all.yaml": accessKeyYaml("all", "spent"),
  };
  for (const [name, limits] of Object.entries(agents))
    files[`agent-${name}.yaml`] = agentYaml(name, ["open/*"], limits);
  stack = await Stack.start({ files, args: ["--trusted-proxy", `${PROXY}/32`] });
  for (const name of Object.keys(agents)) tokens[name] = await stack.token(name);
});

afterAll(async () => {
  await stack?.stop();
  await vendor?.close();
});

function hashOf(name: string): string {
  return (JSON.parse(accessKeyYaml(name, "open")) as { spec: { keySHA256: string } }).spec
    .keySHA256;
}

interface Try {
  readonly token: string;
  readonly prefix?: "/ext" | "";
  readonly model?: string;
  readonly from?: string;
  readonly forwardedFor?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Uses up the limit. */
  readonly before?: (dialect: DialectName) => Promise<void>;
}

const outside =
  (name: string, more: Partial<Try> = {}): (() => Try) =>
  () => ({ token: rawKey(name), prefix: "/ext", ...more });
const inside =
  (name: string, more: Partial<Try> = {}): (() => Try) =>
  () => ({ token: tokens[name] ?? "", prefix: "", ...more });

/** Name of the case in docs/external.md, and its request. */
const CASES: Readonly<Record<string, () => Try>> = {
  "no key": outside("key", { token: "", headers: { authorization: "" } }),
  "several keys that differ": outside("key", { headers: { "x-api-key": rawKey("used") } }),
  "an unknown key": outside("nobody"),
  "a revoked key": outside("revoked"),
  "an expired key": outside("expired"),
  "a rotated key after its grace period": outside("rotated"),
  "a workload token under `/ext`": () => ({ token: tokens["plain"] ?? "", prefix: "/ext" }),
  "an access key outside `/ext`": outside("key", { prefix: "" }),
  "a provider without external access": outside("outsider"),
  "a model the key does not allow": outside("narrow", { model: "gpt-4" }),
  "a model that the key allows but its provider does not": outside("narrow", {
    model: "secret-model",
  }),
  "an address the key does not allow": outside("office"),
  "`X-Forwarded-For` from a peer that is not a trusted proxy": outside("office", {
    from: STRANGER,
    forwardedFor: "198.51.100.7",
  }),
  "an allowed address that the client itself put into `X-Forwarded-For`": outside("office", {
    from: PROXY,
    forwardedFor: "198.51.100.7, 203.0.113.9",
  }),
  "`X-Forwarded-For` that cannot be parsed": outside("office", {
    from: PROXY,
    forwardedFor: "198.51.100.7,",
  }),
  "the key's `maxRequestsPerDay`": outside("used"),
  "the key's `maxTokensPerDay`": outside("dry"),
  "the provider's `externalAccess.maxTokensPerDay`": outside("all"),
  "the key's `requestsPerMinute`": outside("slow"),
  "the agent's `requestsPerMinute`": inside("rpm", {
    before: async (dialect) => void (await send(dialect, { token: tokens["rpm"] ?? "" }).answer),
  }),
  "the agent's `maxConcurrentRequests`": inside("concurrent", { before: occupy }),
  "the agent's `maxTokensPerRequest`": inside("request"),
  "the agent's `maxTokensPerDay`": inside("daily"),
  "the agent's `maxCostPerDayUSD`": inside("cost", { model: "open/gpt-5" }),
};

const held: { readonly gate: Gate; readonly exchange: Exchange }[] = [];

/** One request at the provider, which does not answer before the test is over. */
async function occupy(dialect: DialectName): Promise<void> {
  const gate = new Gate();
  vendor.next(async (request, response) => {
    await gate.pass();
    await vendor.says({ text: ["late"] })(request, response);
  });
  const exchange = send(dialect, { token: tokens["concurrent"] ?? "" });
  held.push({ gate, exchange });
  await gate.reached;
}

function send(
  dialect: DialectName,
  { token, prefix = "", model, from, forwardedFor, headers }: Try,
): Exchange {
  const target: Target = {
    port: stack.port,
    token,
    prefix,
    ...(from === undefined ? {} : { from }),
  };
  return begin(target, {
    dialect,
    model: model ?? (prefix === "/ext" ? "gpt-5" : "open/gpt-5"),
    headers: {
      ...(forwardedFor === undefined ? {} : { "x-forwarded-for": forwardedFor }),
      ...headers,
    },
  });
}

/** Location of the code in each dialect's error. */
function codeOf(dialect: DialectName, { text }: Answer): string {
  const { error } = JSON.parse(text) as {
    error: { code: string; details: { error_code: string } & { reason: string }[] };
  };
  if (dialect === "openai") return error.code;
  return dialect === "anthropic"
    ? error.details.error_code
    : (error.details[0]?.reason.toLowerCase() ?? "");
}

const PAGE = readFileSync(path.join(ROOT, "docs/external.md"), "utf8");
const ROWS = [...PAGE.matchAll(/^\| (.+?) \| (\d{3}) \| `(\w+)` \|$/gm)].map(
  ([, name, status, code]) => ({
    name: name as string,
    status: Number(status),
    code: code as string,
  }),
);

test("the page shows these cases", () => {
  expect(ROWS.map(({ name }) => name)).toEqual(Object.keys(CASES));
});

describe.each(ROWS)("$name", ({ name, status, code }) => {
  test.each(DIALECTS)("in the dialect of %s", async (dialect) => {
    const attempt = (CASES[name] as () => Try)();
    vendor.reset();
    await attempt.before?.(dialect);
    const seen = vendor.requests.length;
    const answer = await send(dialect, attempt).answer;
    expect({ status: answer.status, code: codeOf(dialect, answer) }).toEqual({ status, code });
    expect(answer.message).toMatch(/^[A-Z].*\.$/);
    expect(answer.text).not.toContain(attempt.token === "" ? "svc_" : attempt.token);
    expect(answer.headers["content-type"]).toBe("application/json");
    expect(answer.headers["retry-after"] !== undefined).toBe(status === 429);
    expect(vendor.requests).toHaveLength(seen);
    for (const { gate, exchange } of held.splice(0)) {
      gate.open();
      expect((await exchange.answer).status).toBe(200);
    }
  });
});

describe("what is near to a refusal and is none", () => {
  test.each<[string, () => Try]>([
    ["the key", outside("key")],
    ["in its vendor's wrapping", outside("key", { token: `sk-ant-api03-${rawKey("key")}-AA` })],
    ["a model the key allows", outside("narrow", { model: "gpt-5" })],
    ["with its provider before it", outside("narrow", { model: "open/gpt-5" })],
    [
      "an allowed address, through the trusted proxy",
      outside("office", { from: PROXY, forwardedFor: "203.0.113.9, 198.51.100.7" }),
    ],
    [
      "the same as IPv6 writes it",
      outside("office", { from: PROXY, forwardedFor: "::ffff:198.51.100.7" }),
    ],
    [
      "through two proxies",
      outside("office", { from: PROXY, forwardedFor: `198.51.100.7, ${PROXY}` }),
    ],
  ])("%s", async (_name, attempt) => {
    vendor.reset();
    vendor.always(vendor.says({ text: ["ok"] }));
    for (const dialect of DIALECTS)
      expect((await send(dialect, attempt()).answer).status).toBe(200);
    for (const request of vendor.requests) {
      expect(request.headers.authorization).toBe(`Bearer ${vendor.key}`);
      expect(JSON.stringify([request.rawHeaders, request.body])).not.toMatch(
        /svc_|x-forwarded|198\.51/,
      );
    }
  });

  test("a key that is rotated, then revoked, without a restart", async () => {
    vendor.reset();
    vendor.always(vendor.says({ text: ["ok"] }));
    const previous = { keySHA256: hashOf("turning"), expiresAt: ahead(DAY_MS) };
    const answerOf = async (name: string): Promise<number> =>
      (await send("openai", outside(name)()).answer).status;
    stack.write("turning.yaml", accessKeyYaml("turning", "open"));
    await until(async () => (await answerOf("turning")) === 200, {
      what: "the new key to be known",
    });
    stack.write(
      "turning.yaml",
      accessKeyYaml("turning", "open", { keySHA256: hashOf("turned"), previous }),
    );
    await until(async () => (await answerOf("turned")) === 200, {
      what: "the rotated key to be known",
    });
    expect(await answerOf("turning")).toBe(200);
    stack.write(
      "turning.yaml",
      accessKeyYaml("turning", "open", { keySHA256: hashOf("turned"), previous, revoked: true }),
    );
    await until(async () => (await answerOf("turned")) === 401, { what: "the revocation" });
    expect(await answerOf("turning")).toBe(401);
  });
});
