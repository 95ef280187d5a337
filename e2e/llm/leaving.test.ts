/**
 * Ways to leave a call, to cut it, to avoid billing, to make it retry: the counted tokens are never
 * below those that the provider generated, and an ordinary stop is never counted as twice as much.
 */
import { describe, expect, test } from "vitest";
import { type Ask, begin } from "../support/client.ts";
import { useFixture } from "../support/fixture.ts";
import { agentYaml, providerYaml } from "../support/resources.ts";
import { MODELS } from "../support/samples.ts";
import { type DialectName, DIALECTS, type Vendor } from "../support/vendors.ts";
import { Gate, until } from "../support/wait.ts";

const fixture = useFixture({
  models: [
    "openai/*",
    "anthropic/*",
    "gemini/*",
    "to-the-end-openai/*",
    "to-the-end-anthropic/*",
    "to-the-end-gemini/*",
  ],
  rateLimits: { maxTokensPerDay: 1_000_000_000 },
  providers: {
    openai: { spec: { timeouts: { firstByteMs: 1_000 } } },
  },
  files: (vendors) => ({
    "spender.yaml": agentYaml("spender", ["openai/*"], { maxTokensPerDay: 1_000_000 }),
    ...Object.fromEntries(
      DIALECTS.map((name) => [
        `to-the-end-${name}.yaml`,
        providerYaml(`to-the-end-${name}`, vendors[name], { spec: { onDisconnect: "readToEnd" } }),
      ]),
    ),
  }),
});

const target = (): { port: number; token: string } => ({
  port: fixture.stack.port,
  token: fixture.token,
});

/** Output tokens counted since `before`. */
async function counted(): Promise<number> {
  await fixture.stack.idle();
  return (await fixture.stack.metrics()).sum("svc_llm_tokens_total", { kind: "output" });
}

const WORDS = Array.from({ length: 60 }, (_, n) => `word${n % 10} `);
const ask = (dialect: DialectName, provider: string, stream: boolean, more = {}): Ask => ({
  dialect,
  model: `${provider}/${MODELS[dialect]}`,
  stream,
  body: more,
});

/** Disconnects when the answer so far contains `text`. */
async function leaveAt(text: string, asked: Ask): Promise<void> {
  const exchange = begin(target(), asked);
  const response = await exchange.response;
  let seen = "";
  await new Promise<void>((resolve, reject) => {
    response.on("data", (part: Buffer) => {
      seen += part.toString();
      if (seen.includes(text)) resolve();
    });
    response.on("end", () => reject(new Error(`ended without ${text}: ${seen}`)));
    response.on("error", reject);
  });
  exchange.leave();
}

describe.each(DIALECTS)("%s", (dialect) => {
  const vendor = (): Vendor => fixture.vendors[dialect];
  /** The log line of the call that the provider received. */
  const account = async (): Promise<Record<string, unknown>> =>
    fixture.stack.callOf(String((await vendor().request()).headers["x-request-id"]));

  test.each([10, 30, 59])("an ordinary stop after %i tokens", async (tokens) => {
    const gate = new Gate();
    const hold = { gate, before: "content", afterContent: tokens } as const;
    vendor().always(vendor().says({ text: WORDS, hold, usage: { input: 11, output: 60 } }));
    const before = await counted();
    const asked = ask(dialect, dialect, true);
    const model = dialect === "openai" ? "openai/gpt-4o-mini" : asked.model;
    const exchange = begin(target(), { ...asked, model: noReasoning(dialect) ?? model });
    const response = await exchange.response;
    let seen = 0;
    await new Promise<void>((resolve) =>
      response.on("data", (part: Buffer) => {
        seen += part.toString().match(/word\d/g)?.length ?? 0;
        if (seen >= tokens) resolve();
      }),
    );
    exchange.leave();
    const output = (await counted()) - before;
    gate.open();
    expect(output).toBeGreaterThanOrEqual(tokens);
    expect(output).toBeLessThanOrEqual(2 * tokens + 30);
  });

  test("an unstreamed answer that is left costs what the request may come to", async () => {
    vendor().always(vendor().hangs());
    const before = await counted();
    const exchange = begin(target(), ask(dialect, dialect, false));
    await vendor().request();
    exchange.leave();
    expect((await counted()) - before).toBeGreaterThanOrEqual(64);
  });

  describe("read to its end", () => {
    const provider = `to-the-end-${dialect}`;

    test("a stream that is left costs exactly what the provider says", async () => {
      const gate = new Gate();
      const hold = { gate, before: "content", afterContent: 5 } as const;
      vendor().always(vendor().says({ text: WORDS, hold, usage: { input: 11, output: 4_321 } }));
      const before = await counted();
      await leaveAt("word4", ask(dialect, provider, true));
      // Envoy has noticed the client's disconnect before the provider continues.
      await until(async () => (await fixture.stack.status()).activeCalls === 1);
      gate.open();
      expect((await counted()) - before).toBe(4_321);
      expect(await account()).toMatchObject({
        end: "disconnected",
        usage: "exact",
        inputTokens: 11,
      });
      expect(await (await vendor().request()).closed).toBe("finished");
    });

    test("an unstreamed answer that is left before it begins costs exactly that too", async () => {
      const gate = new Gate();
      vendor().always(async (request, response) => {
        await gate.pass();
        await vendor().says({ text: WORDS, usage: { input: 11, output: 777 }, gzip: true })(
          request,
          response,
        );
      });
      const before = await counted();
      const exchange = begin(target(), ask(dialect, provider, false));
      await gate.reached;
      exchange.leave();
      gate.open();
      expect((await counted()) - before).toBe(777);
      expect(await account()).toMatchObject({ end: "disconnected", usage: "exact" });
    });

    test("a whole answer passes as ever, and its provider's errors too", async () => {
      vendor().next(vendor().says({ text: ["Hello"] }));
      const answer = await begin(target(), ask(dialect, provider, true)).answer;
      expect([answer.status, answer.text.includes("Hello")]).toEqual([200, true]);
      vendor().always(vendor().fails({ status: 400, message: "no such thing" }));
      const refused = await begin(target(), ask(dialect, provider, false)).answer;
      expect(refused.status).toBe(400);
      expect(refused.message).toContain("no such thing");
      const { headers } = await vendor().request(1);
      expect(Object.keys(headers).filter((name) => name.startsWith("x-svc-"))).toEqual([]);
    });
  });
});

function noReasoning(dialect: DialectName): string | undefined {
  return dialect === "gemini" ? "gemini/gemini-2.0-flash" : undefined;
}

describe("asking for what is not billed", () => {
  const post = async (path: string, body: object): Promise<{ status: number; text: string }> => {
    const token = await fixture.stack.token("spender");
    const response = await fetch(`${fixture.stack.baseUrl}${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return { status: response.status, text: await response.text() };
  };
  const model = `openai/${MODELS.openai}`;

  test.each([
    ["/v1/chat/completions", { model, messages: [], stream: "true" }, 400],
    ["/v1/responses", { model, input: "hi", stream: "true" }, 400],
    ["/v1/responses", { model, input: "hi", stream: 1 }, 400],
    ["/v1/embeddings", { model, input: "hi", stream: "false" }, 400],
    ["/v1/responses", { model, input: "hi", background: true }, 403],
    ["/v1/responses", { model, input: "hi", Background: true }, 403],
    ["/v1/responses", { model, input: "hi", max_output_tokens: "9" }, 400],
    ["/v1/chat/completions", { model, messages: [], n: "2" }, 400],
    ["/v1/chat/completions", { model, messages: [], service_tier: "priority" }, 403],
    ["/v1/responses", { model, input: "hi", tools: [{ type: "web_search" }] }, 403],
  ])("%s %j is refused", async (path, body, status) => {
    const answer = await post(path, body);
    expect([answer.status, answer.text]).toEqual([status, expect.any(String)]);
    expect(fixture.vendors.openai.requests).toHaveLength(0);
  });
});

describe("retries", () => {
  test("an attempt that timed out and one that broke are counted beside the answer", async () => {
    const { openai } = fixture.vendors;
    openai.next(openai.hangs(), openai.resets(), openai.says({ text: ["Hello"] }));
    const before = await counted();
    const asked = ask("openai", "openai", false, { max_tokens: 100 });
    const answer = await begin(target(), asked).answer;
    expect(answer.status).toBe(200);
    expect(answer.headers["x-svc-retries"]).toBe("2");
    expect((await counted()) - before).toBe(100 + 100 + 7);
  });

  test("an attempt that the provider refused costs nothing", async () => {
    const { openai } = fixture.vendors;
    openai.next(openai.fails({ status: 503, message: "busy" }), openai.says({ text: ["Hello"] }));
    const before = await counted();
    expect((await begin(target(), ask("openai", "openai", false)).answer).status).toBe(200);
    expect((await counted()) - before).toBe(7);
  });
});
