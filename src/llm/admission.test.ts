import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { MAX_REQUEST_BODY_BYTES } from "./surface.ts";
import type { Permit } from "./call.ts";
import { Gateway, provider, type Request, TOKEN } from "./testing.ts";
import { chat } from "./testing-samples.ts";

type Dialect = "openai" | "anthropic" | "gemini";

const PATHS: Readonly<Record<Dialect, string>> = {
  openai: "/v1/chat/completions",
  anthropic: "/v1/messages",
  gemini: "/v1beta/models/openai%2Fm:generateContent",
};

const BODIES: Readonly<Record<Dialect, (model: string) => object>> = {
  openai: chat,
  anthropic: (model) => ({ ...chat(model), max_tokens: 10 }),
  gemini: () => ({ contents: [{ role: "user", parts: [{ text: "the-prompt" }] }] }),
};

/** If the path names the model, it is inserted there. */
function pathFor(dialect: Dialect, model: string): string {
  return dialect === "gemini"
    ? `/v1beta/models/${encodeURIComponent(model)}:generateContent`
    : PATHS[dialect];
}

/**
 * Returns code and message as a client of the dialect finds them; throws if the shape is not that
 * dialect's.
 */
function readError(
  dialect: Dialect,
  text: string,
): { readonly code: string; readonly message: string; readonly status?: number } {
  const body = JSON.parse(text) as { type?: string; error: Record<string, unknown> };
  const { error } = body;
  switch (dialect) {
    case "openai":
      expect(Object.keys(error).sort()).toEqual(["code", "message", "param", "type"]);
      return { code: String(error["code"]), message: String(error["message"]) };
    case "anthropic": {
      expect(body.type).toBe("error");
      expect(error["type"]).toMatch(/_error$|request_too_large/);
      const details = error["details"] as { error_code: string };
      return { code: details.error_code, message: String(error["message"]) };
    }
    case "gemini": {
      const details = error["details"] as { "@type": string; reason: string }[];
      expect(details[0]?.["@type"]).toBe("type.googleapis.com/google.rpc.ErrorInfo");
      return {
        code: (details[0]?.reason ?? "").toLowerCase(),
        message: String(error["message"]),
        status: Number(error["code"]),
      };
    }
  }
}

interface Case {
  readonly name: string;
  readonly status: number;
  readonly code: string;
  readonly request: (dialect: Dialect) => Request & { readonly endOfStream?: boolean };
}

/** Refused before the body is read. */
const BY_HEADERS: readonly Case[] = [
  {
    name: "no key",
    status: 401,
    code: "missing_key",
    request: () => ({ headers: { authorization: "" } }),
  },
  {
    name: "keys that differ",
    status: 401,
    code: "missing_key",
    request: () => ({ headers: { "x-api-key": "another" } }),
  },
  {
    name: "an unknown key",
    status: 401,
    code: "invalid_key",
    request: () => ({ headers: { authorization: "Bearer svcw_other" } }),
  },
  { name: "no body", status: 400, code: "invalid_request", request: () => ({ endOfStream: true }) },
  {
    name: "a compressed body",
    status: 415,
    code: "unsupported_encoding",
    request: () => ({ headers: { "content-encoding": "gzip" } }),
  },
  {
    name: "another method",
    status: 405,
    code: "method_not_allowed",
    request: () => ({ headers: { ":method": "GET" } }),
  },
];

/** Refused by the body. */
const BY_BODY: readonly Case[] = [
  { name: "no JSON", status: 400, code: "invalid_request", request: () => ({ body: "{" }) },
  { name: "no object", status: 400, code: "invalid_request", request: () => ({ body: "[]" }) },
  { name: "JSON null", status: 400, code: "invalid_request", request: () => ({ body: "null" }) },
  { name: "an empty body", status: 400, code: "invalid_request", request: () => ({ body: "" }) },
  {
    name: "an unknown model",
    status: 404,
    code: "model_not_found",
    request: (d) => ({ path: pathFor(d, "gone/m"), body: BODIES[d]("gone/m") }),
  },
  {
    name: "a denied model",
    status: 403,
    code: "model_not_allowed",
    request: (d) => ({ path: pathFor(d, "secret-model"), body: BODIES[d]("secret-model") }),
  },
  {
    name: "a name of several",
    status: 400,
    code: "ambiguous_model",
    request: (d) => ({ path: pathFor(d, "both"), body: BODIES[d]("both") }),
  },
  {
    name: "a body above the limit",
    status: 413,
    code: "body_too_large",
    request: () => ({ body: Buffer.alloc(MAX_REQUEST_BODY_BYTES + 1, " ") }),
  },
];

const DIALECTS: readonly Dialect[] = ["openai", "anthropic", "gemini"];
const each = (cases: readonly Case[]) =>
  DIALECTS.flatMap((dialect) => cases.map((one) => ({ dialect, ...one })));

describe("refusals, in the dialect of the caller", () => {
  test.each(each(BY_HEADERS))("$dialect: $name", async ({ dialect, status, code, request }) => {
    const gateway = new Gateway(provider("openai"));
    const trip = gateway.trip();
    const { endOfStream, ...rest } = request(dialect);
    trip.requestHeaders({ path: PATHS[dialect], ...rest }, endOfStream);
    const refused = trip.exchange.responded;
    expect(refused.status).toBe(status);
    expect(refused.headers.get("content-type")).toBe("application/json");
    expect(readError(dialect, refused.body).code).toBe(code);
    expect(await gateway.metric("svc_llm_refused_total")).toEqual([{ value: 1, labels: { code } }]);
    trip.closed();
    expect(gateway.calls.size).toBe(0);
    expect(gateway.logText).toEqual([]);
  });

  test.each(each(BY_BODY))("$dialect: $name", async ({ dialect, status, code, request }) => {
    const gateway = new Gateway(provider("openai"), provider("other"));
    const trip = gateway.trip();
    const { body = BODIES[dialect]("openai/m"), ...rest } = request(dialect);
    trip.requestHeaders({ path: PATHS[dialect], ...rest });
    expect(trip.exchange.last).toEqual({ kind: "pass", phase: "request_headers" });
    trip.requestBody(body);
    const refused = trip.exchange.responded;
    expect(refused.status).toBe(status);
    const error = readError(dialect, refused.body);
    expect(error.code).toBe(code);
    if (dialect === "gemini") expect(error.status).toBe(status);
    expect(await gateway.metric("svc_llm_refused_total")).toEqual([{ value: 1, labels: { code } }]);
    expect(gateway.calls.size).toBe(0);
  });

  test.each<[string, Dialect]>([
    ["/v1/files", "openai"],
    ["/v1/messages/batches", "anthropic"],
    ["/v1beta/cachedContents", "gemini"],
  ])("an unknown path: %s", (path, dialect) => {
    const trip = new Gateway(provider("openai")).trip().requestHeaders({ path });
    expect(trip.exchange.responded.status).toBe(404);
    expect(readError(dialect, trip.exchange.responded.body).code).toBe("not_found");
  });

  test.each<[string, Dialect, string, object]>([
    ["embeddings of Anthropic", "openai", "/v1/embeddings", { model: "anthropic/m", input: "x" }],
    [
      "token counts of OpenAI",
      "anthropic",
      "/v1/messages/count_tokens",
      { model: "openai/m", messages: [] },
    ],
    [
      "token counts of Anthropic for Gemini's clients",
      "gemini",
      "/v1beta/models/anthropic%2Fm:countTokens",
      {},
    ],
  ])("an endpoint that the provider lacks: %s", (_name, dialect, path, body) => {
    const gateway = new Gateway(
      provider("openai"),
      provider("anthropic"),
      provider("gemini"),
      provider("mock"),
    );
    const { status, body: text } = gateway.trip().request({ path, body }).exchange.responded;
    expect(status).toBe(501);
    expect(readError(dialect, text).code).toBe("not_implemented");
  });

  test.each<[Dialect, string, object]>([
    ["openai", "/v1/chat/completions", chat("anthropic/m", { n: 2 })],
    [
      "anthropic",
      "/v1/messages",
      {
        ...BODIES.anthropic("openai/m"),
        tools: [{ type: "web_search_20250305", name: "web_search" }],
      },
    ],
    [
      "gemini",
      "/v1beta/models/openai%2Fm:generateContent",
      { ...BODIES.gemini(""), tools: [{ googleSearch: {} }] },
    ],
    [
      "openai",
      "/v1/responses",
      { model: "anthropic/m", input: "x", previous_response_id: "resp_1" },
    ],
  ])("what the provider cannot express, asked by %s", (dialect, path, body) => {
    const gateway = new Gateway(provider("openai"), provider("anthropic"));
    const { status, body: text } = gateway.trip().request({ path, body }).exchange.responded;
    expect(status).toBe(400);
    expect(readError(dialect, text).code).toBe("unsupported_by_upstream");
  });

  test("a Gemini stream that is not asked as server-sent events", () => {
    const path = "/v1beta/models/openai%2Fm:streamGenerateContent";
    const gateway = new Gateway(provider("openai"));
    const refused = gateway.trip().requestHeaders({ path: `${path}?xalt=sse` }).exchange.responded;
    expect(refused.status).toBe(400);
    expect(readError("gemini", refused.body).code).toBe("invalid_request");
    expect(gateway.trip().requestHeaders({ path: `${path}?alt=sse` }).exchange.last.kind).toBe(
      "pass",
    );
    expect(
      gateway.trip().requestHeaders({ path: `${path}?x=1&alt=sse&y=2` }).exchange.last.kind,
    ).toBe("pass");
  });

  test("a model's name is shown back short", () => {
    const gateway = new Gateway(provider("openai"));
    const { body } = gateway.trip().request({ body: chat("x".repeat(5_000)) }).exchange.responded;
    expect(body.length).toBeLessThan(400);
  });

  test("a key that is sent twice but is the same is one key", () => {
    const trip = new Gateway(provider("openai"))
      .trip()
      .requestHeaders({ headers: { "x-api-key": TOKEN } });
    expect(trip.exchange.last.kind).toBe("pass");
  });

  test("Envoy's own reply before the call began is in the caller's dialect", async () => {
    const gateway = new Gateway(provider("openai"));
    const trip = gateway.trip().requestHeaders({ path: PATHS.anthropic });
    trip.responseHeaders(413, { "x-svc-local": "- request_payload_too_large" });
    expect(trip.exchange.responded.status).toBe(413);
    expect(readError("anthropic", trip.exchange.responded.body).code).toBe("body_too_large");
    expect(await gateway.metric("svc_llm_refused_total")).toEqual([
      { value: 1, labels: { code: "body_too_large" } },
    ]);
    trip.closed();
    expect(gateway.logText).toEqual([]);
  });
});

describe("a call on its way", () => {
  const gateway = (): Gateway => new Gateway(provider("openai"), provider("anthropic"));

  test("the first attempt's request is made, and the caller's own headers go", () => {
    const strangers = { "x-svc-cluster": "chain/other" };
    const trip = gateway()
      .trip()
      .request({ headers: strangers, body: chat("anthropic/m") });
    const { headers, body, clearRouteCache } = trip.exchange.proceeded;
    const set = new Map(headers?.set);
    expect(set.get("x-svc-cluster")).toBe("upstream/default/anthropic@https://anthropic.test:443");
    expect(set.get("x-request-id")).toBe("call-1");
    expect(set.get(":path")).toBe("/v1/messages");
    expect(set.get(":authority")).toBe("anthropic.test");
    expect(set.get("x-api-key")).toBe("sk-secret-anthropic");
    expect(set.get("content-length")).toBe(String(body?.length));
    expect(set.get("x-envoy-max-retries")).toBe("0");
    expect(set.get("x-envoy-upstream-rq-per-try-timeout-ms")).toBe("300000");
    expect(headers?.remove).toEqual(expect.arrayContaining(["authorization", "api-key"]));
    expect(headers?.remove).not.toContain("x-svc-cluster");
    expect(clearRouteCache).toBe(true);
    expect(JSON.parse(String(body))).toMatchObject({ model: "m", messages: [{ role: "user" }] });
  });

  test("no header is both set and removed", () => {
    for (const name of ["openai", "anthropic"]) {
      const { headers } = gateway()
        .trip()
        .request({ body: chat(`${name}/m`) }).exchange.proceeded;
      const set = new Set(headers?.set?.map(([header]) => header));
      expect((headers?.remove ?? []).filter((header) => set.has(header))).toEqual([]);
    }
  });

  test("the caller's bytes go on untouched where nothing must change", () => {
    const raw = '{ "model":"openai/m" , "input" : "x" }';
    const changed = gateway().trip().request({ path: "/v1/embeddings", body: raw })
      .exchange.proceeded;
    expect(String(changed.body)).toBe('{ "model":"m" , "input" : "x" }');
    const google = new Gateway(provider("gemini"));
    const same = google
      .trip()
      .request({ path: "/v1beta/models/gemini%2Fm:generateContent", body: '{ "contents": [] }' })
      .exchange.proceeded;
    expect(same.body).toBeUndefined();
    expect(new Map(same.headers?.set).has("content-length")).toBe(false);
  });

  test.each([
    [
      "alone, in its own time",
      1,
      30_000,
      "upstream/default/openai@https://openai.test:443",
      "30000",
    ],
    [
      "with attempts left and a long time, straight",
      3,
      120_000,
      "chain/default/openai@https://openai.test:443",
      "131020",
    ],
    [
      "with attempts left and a short time, through the internal listener, which keeps it",
      3,
      119_999,
      "svc_attempts",
      "131019",
    ],
  ])("the first attempt goes %s", (_name, attempts, firstByteTimeoutMs, cluster, perTry) => {
    const retries = { attempts, baseIntervalMs: 5, maxIntervalMs: 20, maxRetryAfterMs: 10_000 };
    const trip = new Gateway(provider("openai", { retries, firstByteTimeoutMs })).trip().request();
    const set = new Map(trip.exchange.proceeded.headers?.set);
    expect(set.get("x-svc-cluster")).toBe(cluster);
    expect(set.get("x-envoy-max-retries")).toBe(String(attempts - 1));
    expect(set.get("x-envoy-upstream-rq-per-try-timeout-ms")).toBe(perTry);
  });

  test("fallbacks that are missing, deny the model, or lack the endpoint are no attempts", () => {
    const fallbacks = ["default/gone", "default/closed", "default/anthropic"].map((key) => ({
      provider: key,
      model: undefined,
    }));
    const closed = provider("closed", { allowsModel: () => false });
    const all = new Gateway(provider("openai", { fallbacks }), closed, provider("anthropic"));
    const retriesOf = (path: string, body: object): string | undefined =>
      new Map(all.trip().request({ path, body }).exchange.proceeded.headers?.set).get(
        "x-envoy-max-retries",
      );
    expect(retriesOf("/v1/chat/completions", chat("openai/m"))).toBe("1");
    expect(retriesOf("/v1/embeddings", { model: "openai/m", input: "x" })).toBe("0");
  });

  test("a reload in the middle of a request does not change what it sees", () => {
    const shared = gateway();
    const trip = shared.trip().requestHeaders();
    shared.policy = {
      version: "2",
      agentsByTokenHash: new Map(),
      keysByHash: new Map(),
      providers: new Map(),
      mcpServers: new Map(),
      closedMcpServers: new Map(),
    };
    expect(trip.requestBody(chat("openai/m")).exchange.last.kind).toBe("proceed");
    expect(shared.trip().requestHeaders().exchange.responded.status).toBe(401);
  });
});

describe("a Permit", () => {
  test("cannot be written down", () => {
    const { grants } = new Gateway(provider("openai")).policy.agentsByTokenHash.values().next()
      .value ?? { grants: [] };
    // @ts-expect-error it has a brand that no other file can name
    const forged: Permit = { agent: undefined as never, grant: grants[0] as never };
    expect(forged).toBeDefined();
  });

  test.each([
    ["Permit", path.join("llm", "request", "authorize.ts")],
    ["ServicePermit", path.join("binding", "judge.ts")],
  ])("%s is asserted in %s alone", (name, only) => {
    const files = readdirSync(path.resolve(import.meta.dirname, ".."), {
      recursive: true,
      encoding: "utf8",
    }).filter(
      (file) => file.endsWith(".ts") && !file.endsWith(".test.ts") && !file.startsWith("gen"),
    );
    const makers = files.filter((file) =>
      new RegExp(String.raw`\bas\s+(unknown\s+as\s+)?${name}\b|<${name}>`).test(
        readFileSync(path.resolve(import.meta.dirname, "..", file), "utf8"),
      ),
    );
    expect(makers).toEqual([only]);
  });
});

describe("the headers of a refusal", () => {
  const unused = {
    "x-svc-call-id": "call-1",
    "x-svc-retries": "0",
    "x-svc-duration-ms": "0",
    "x-svc-input-tokens": "0",
    "x-svc-output-tokens": "0",
  };
  const refusedHeaders = (request: Request, gateway = new Gateway(provider("openai"))): object => {
    const { headers } = gateway.trip().request(request).exchange.responded;
    const all = Object.fromEntries(headers);
    return Object.fromEntries(Object.entries(all).filter(([name]) => name.startsWith("x-svc-")));
  };

  test("before its model is known", () => {
    expect(refusedHeaders({ headers: { authorization: "Bearer wrong" } })).toEqual(unused);
    expect(refusedHeaders({ body: "{" })).toEqual(unused);
    expect(refusedHeaders({ body: chat("openai/m", { model: "unknown/m" }) })).toEqual(unused);
    expect(refusedHeaders({ body: chat("secret-model") })).toEqual(unused);
  });

  test("once its model is known to be allowed", () => {
    const gateway = new Gateway(provider("anthropic"));
    const request = { body: chat("anthropic/m", { functions: [{}] }) };
    expect(refusedHeaders(request, gateway)).toEqual({
      ...unused,
      "x-svc-model-id": "anthropic/m",
    });
  });
});
