/** Large and odd requests: bodies, headers, encodings, paths. */
import http from "node:http";
import { describe, expect, test } from "vitest";
import {
  type Ask,
  begin,
  call,
  collect,
  requestBody,
  requestPath,
  textOf,
} from "../support/client.ts";
import { useFixture } from "../support/fixture.ts";
import { expectChat, expectMediated } from "../support/mediated.ts";
import { MODELS } from "../support/samples.ts";
import { type DialectName, DIALECTS } from "../support/vendors.ts";
import { Gate } from "../support/wait.ts";

const fixture = useFixture({
  providers: {
    openai: { spec: { fallbacks: [{ provider: "anthropic", model: MODELS.anthropic }] } },
    anthropic: { spec: { fallbacks: [{ provider: "gemini", model: MODELS.gemini }] } },
    gemini: { spec: { fallbacks: [{ provider: "openai", model: MODELS.openai }] } },
  },
});
const target = (): { port: number; token: string } => ({
  port: fixture.stack.port,
  token: fixture.token,
});
const NEXT = { openai: "anthropic", anthropic: "gemini", gemini: "openai" } as const;

const MIB = 1024 * 1024;

/** Base64 of about this many bytes, cheap to create and to search for. */
const image = (bytes: number): string =>
  Buffer.alloc(Math.floor((bytes * 3) / 4 / 3) * 3, 0x5a).toString("base64");

function withImage(dialect: DialectName, data: string): Record<string, unknown> {
  switch (dialect) {
    case "openai":
      return {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "What is this?" },
              { type: "image_url", image_url: { url: `data:image/png;base64,${data}` } },
            ],
          },
        ],
      };
    case "anthropic":
      return {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "What is this?" },
              { type: "image", source: { type: "base64", media_type: "image/png", data } },
            ],
          },
        ],
      };
    case "gemini":
      return {
        contents: [
          {
            role: "user",
            parts: [{ text: "What is this?" }, { inlineData: { mimeType: "image/png", data } }],
          },
        ],
      };
  }
}

describe.each(DIALECTS)("a large body in the dialect of %s", (dialect) => {
  const ask = { dialect, model: `${dialect}/${MODELS[dialect]}` };

  test("20 MiB pass, also when retried and when a fallback of another dialect takes over", async () => {
    const data = image(20 * MIB);
    const first = fixture.vendors[dialect];
    const second = fixture.vendors[NEXT[dialect]];
    first.always(first.fails({ status: 503, message: "down" }));
    second.always(second.says({ text: ["Large"] }));
    const answer = await call(fixture, { ...ask, body: withImage(dialect, data) });
    expect(answer.status).toBe(200);
    expect(textOf(dialect, answer.text)).toBe("Large");
    expect(answer.headers["x-svc-retries"]).toBe("3");
    expect(first.requests).toHaveLength(3);
    for (const request of first.requests) {
      expect(request.body.length).toBeGreaterThan(20 * MIB);
      expect(request.body.includes(data)).toBe(true);
      expect(Number(request.headers["content-length"] ?? request.body.length)).toBe(
        request.body.length,
      );
      expect(request.path).toBe(first.requests[0]?.path);
    }
    expect(second.only.body.includes(data)).toBe(true);
    expect(second.only.json).not.toEqual({});
  });

  test("more than 32 MiB is 413", async () => {
    const answer = await call(fixture, { ...ask, body: withImage(dialect, image(33 * MIB)) });
    expect(answer.status).toBe(413);
    expect(answer.message).toMatch(/body/);
    const body = JSON.parse(answer.text) as unknown;
    if (dialect === "openai")
      expect(body).toMatchObject({ error: { code: "body_too_large", param: null } });
    if (dialect === "anthropic")
      expect(body).toMatchObject({ type: "error", error: { type: "request_too_large" } });
    if (dialect === "gemini")
      expect(body).toMatchObject({ error: { code: 413, status: "INVALID_ARGUMENT" } });
    expect(fixture.vendors[dialect].requests).toHaveLength(0);
  });

  test("much more than 32 MiB is 413 too, for a client that sends on", async () => {
    const exchange = begin(target(), { ...ask, body: withImage(dialect, image(80 * MIB)) });
    const status = await exchange.response.then(
      (response) => response.statusCode,
      // The gateway closed the connection while the client was still sending.
      (error: NodeJS.ErrnoException) => error.code,
    );
    expect([413, "EPIPE", "ECONNRESET"]).toContain(status);
    expect(fixture.vendors[dialect].requests).toHaveLength(0);
    await fixture.stack.idle();
  });
});

test("just below 32 MiB passes", async () => {
  const { openai } = fixture.vendors;
  openai.always(openai.says({ text: ["Large"] }));
  const ask: Ask = { dialect: "openai", model: `openai/${MODELS.openai}` };
  const room = 32 * MIB - Buffer.byteLength(requestBody({ ...ask, body: withImage("openai", "") }));
  const answer = await call(fixture, { ...ask, body: withImage("openai", image(room - 8)) });
  expect(answer.status).toBe(200);
});

describe("compressed answers", () => {
  const PAIRS = DIALECTS.flatMap((client) => DIALECTS.map((upstream) => ({ client, upstream })));

  test.each(PAIRS)("$upstream compresses for $client, unasked", async ({ client, upstream }) => {
    const vendor = fixture.vendors[upstream];
    vendor.next(
      vendor.says({ text: ["Hello"], gzip: true }),
      vendor.fails({ status: 400, message: "too hot" }, { gzip: true }),
    );
    const ask: Ask = {
      dialect: client,
      model: `${upstream}/${MODELS[upstream]}`,
      headers: { "accept-encoding": "gzip, br" },
    };
    const exchange = await fetch(`${fixture.stack.baseUrl}${requestPath(ask)}`, {
      method: "POST",
      body: requestBody(ask),
      headers: { "content-type": "application/json", authorization: `Bearer ${fixture.token}` },
    });
    expect(exchange.status).toBe(200);
    expect(textOf(client, await exchange.text())).toBe("Hello");
    expect(exchange.headers.get("x-svc-input-tokens")).toBe("11");
    expect(exchange.headers.get("x-svc-output-tokens")).toBe("7");
    expect(vendor.requests[0]?.headers["accept-encoding"]).toBeUndefined();
    const error = await fetch(`${fixture.stack.baseUrl}${requestPath(ask)}`, {
      method: "POST",
      body: requestBody(ask),
      headers: { "content-type": "application/json", authorization: `Bearer ${fixture.token}` },
    });
    expect(error.status).toBe(400);
    expect(((await error.json()) as { error: { message: string } }).error.message).toContain(
      "too hot",
    );
  });

  test("the client's wish for compression does not reach the upstream", async () => {
    const { openai } = fixture.vendors;
    openai.always(openai.says({ text: ["Hello"] }));
    const headers = { "accept-encoding": "gzip, deflate, br" };
    for (const stream of [false, true]) {
      const answer = await call(fixture, {
        dialect: "openai",
        model: `openai/${MODELS.openai}`,
        stream,
        headers,
      });
      expect(textOf("openai", answer.text)).toBe("Hello");
    }
    for (const request of openai.requests)
      expect(request.headers["accept-encoding"]).toBeUndefined();
  });
});

/** A raw request, because Node's client would change the path. */
async function raw(options: {
  path: string;
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}): Promise<Awaited<ReturnType<typeof collect>>> {
  const { path, method = "POST", headers = {}, body = "" } = options;
  return new Promise((resolve, reject) => {
    const request = http.request(
      { host: "127.0.0.1", port: fixture.stack.port, agent: false, method, path, headers },
      (response) => {
        collect(response).then(resolve, reject);
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

const seen = (): number =>
  DIALECTS.reduce((sum, name) => sum + fixture.vendors[name].requests.length, 0);

describe("headers", () => {
  test("of 100 KB are refused", async () => {
    const chat: Ask = {
      dialect: "openai",
      model: `openai/${MODELS.openai}`,
      headers: { "x-large": "x".repeat(100_000) },
    };
    const end = await call(fixture, chat).then(
      ({ status }) => status,
      // Envoy answers 431 while the headers are still arriving, and closes: a client may see only
      // the close.
      () => "closed",
    );
    expect([431, "closed"]).toContain(end);
    expect(seen()).toBe(0);
  });

  test("that steer the gateway are the gateway's alone", async () => {
    const { openai, anthropic } = fixture.vendors;
    openai.always(openai.says({ text: ["Hello"] }));
    const answer = await call(fixture, {
      dialect: "openai",
      model: `openai/${MODELS.openai}`,
      headers: {
        "x-svc-cluster": "upstream/default/anthropic",
        "x-svc-upstream": "upstream/default/anthropic",
        "x-svc-local": "mine",
        "x-svc-anything": "mine",
        "x-request-id": "mine",
        "x-envoy-original-path": "/v1/elsewhere",
        "x-envoy-upstream-alt-stat-name": "mine",
        "x-envoy-decorator-operation": "mine",
        "x-forwarded-for": "10.1.2.3",
        "x-forwarded-proto": "https",
        "x-forwarded-host": "mine",
        "x-real-ip": "10.1.2.3",
        forwarded: "for=10.1.2.3",
        cookie: "mine=1",
        "x-api-key": fixture.token,
      },
    });
    expect(answer.status).toBe(200);
    expect(anthropic.requests).toHaveLength(0);
    expectChat(fixture, openai, openai.only, MODELS.openai, false);
    expect(answer.headers["x-svc-call-id"]).not.toBe("mine");
    expect(Object.keys(answer.headers).filter((name) => name.startsWith("x-envoy-"))).toEqual([]);
  });

  const RETRY_ON = {
    "x-envoy-retry-on": "retriable-4xx,retriable-status-codes",
    "x-envoy-retriable-status-codes": "400",
  };
  test.each<[string, Record<string, string>]>([
    ["retries", { "x-envoy-max-retries": "9", ...RETRY_ON }],
    ["retried statuses", RETRY_ON],
    [
      "retried headers",
      { "x-envoy-retry-on": "retriable-headers", "x-envoy-retriable-header-names": "content-type" },
    ],
    ["the timeout", { "x-envoy-upstream-rq-timeout-ms": "1" }],
    ["the timeout of an attempt", { "x-envoy-upstream-rq-per-try-timeout-ms": "1" }],
    ["the timeout of a stream", { "x-envoy-upstream-stream-duration-ms": "1" }],
    ["the expected timeout", { "x-envoy-expected-rq-timeout-ms": "1" }],
    [
      "hedging",
      { "x-envoy-hedge-on-per-try-timeout": "true", "x-envoy-upstream-rq-per-try-timeout-ms": "1" },
    ],
    [
      "the answer to a timeout",
      { "x-envoy-upstream-rq-timeout-alt-response": "1", "x-envoy-upstream-rq-timeout-ms": "1" },
    ],
    [
      "all, from an inner address",
      {
        "x-envoy-upstream-rq-timeout-ms": "1",
        "x-forwarded-for": "127.0.0.1",
        "x-envoy-internal": "true",
      },
    ],
  ])("for Envoy's router change nothing: %s", async (_name, headers) => {
    const { openai, anthropic } = fixture.vendors;
    const gate = new Gate();
    openai.always(async (request, response) => {
      await gate.pass();
      await openai.fails({ status: 400, message: "no" })(request, response);
    });
    const target = { port: fixture.stack.port, token: fixture.token };
    const exchange = begin(target, {
      dialect: "openai",
      model: `openai/${MODELS.openai}`,
      headers,
    });
    await openai.request();
    // A whole further call takes longer than the millisecond of the client's timeout.
    anthropic.always(anthropic.says({ text: ["Hello"] }));
    await call(fixture, { dialect: "anthropic", model: `anthropic/${MODELS.anthropic}` });
    gate.open();
    const answer = await exchange.answer;
    expect(answer.status).toBe(400);
    expect(openai.requests).toHaveLength(1);
    expect(anthropic.requests).toHaveLength(1);
    expectMediated(fixture, openai, openai.only);
  });

  test.each(["", "svcw_wrong"])(
    "with no good key, a cluster named by the client opens nothing (%j)",
    async (key) => {
      for (const path of ["/v1/chat/completions", "/v1/models", "/", "/anything", "/v1/messages"]) {
        for (const method of ["GET", "POST"]) {
          const { status } = await raw({
            path,
            method,
            headers: {
              "content-type": "application/json",
              "x-svc-cluster": "upstream/default/openai",
              "x-svc-upstream": "upstream/default/openai",
              ...(key === "" ? {} : { authorization: `Bearer ${key}` }),
            },
            body:
              method === "POST"
                ? requestBody({ dialect: "openai", model: `openai/${MODELS.openai}` })
                : "",
          });
          expect(status, `${method} ${path}`).toBeGreaterThanOrEqual(400);
        }
      }
      expect(seen()).toBe(0);
    },
  );

  test("with a good key, a cluster named by the client opens no other path", async () => {
    for (const path of [
      "/",
      "/anything",
      "/ant/v1/messages",
      "/oai/v1/chat/completions",
      "/v1/files",
      "/metrics/x",
    ]) {
      const { status } = await raw({
        path,
        headers: {
          authorization: `Bearer ${fixture.token}`,
          "content-type": "application/json",
          "x-svc-cluster": "upstream/default/openai",
        },
        body: requestBody({ dialect: "openai", model: `openai/${MODELS.openai}` }),
      });
      expect(status, path).toBeGreaterThanOrEqual(400);
    }
    expect(seen()).toBe(0);
  });
});

describe("paths", () => {
  test.each([
    "//v1/messages",
    "/v1//messages",
    "/v1/../v1/messages",
    "/v1/./messages",
    "/v1%2fmessages",
    "/v1%2Fchat/completions",
    "/healthz/../v1/chat/completions",
    "/healthz/..%2fv1/chat/completions",
    "/v1/chat/completions/",
    "/v1/chat/completions;x=1",
    "/v1/chat/completions%00",
    "/v1/chat/completions%3fx",
    "/V1/chat/completions",
    "/v1/models/openai/x:generateContent/../../chat/completions",
    "/v1beta/models/..%2f..%2fv1:generateContent",
    "/v1\\chat\\completions",
    "http://elsewhere/v1/chat/completions",
  ])("%s does not get around the gateway", async (path) => {
    for (const name of DIALECTS)
      fixture.vendors[name].always(fixture.vendors[name].says({ text: ["Hello"] }));
    const body = requestBody({
      dialect: "openai",
      model: `openai/${MODELS.openai}`,
      body: { max_tokens: 5 },
    });
    // Without a key, no request is forwarded, for any form of the path.
    const anonymous = await raw({ path, headers: { "content-type": "application/json" }, body });
    expect(anonymous.status).toBeGreaterThanOrEqual(400);
    expect(seen()).toBe(0);
    // With a key, it is either refused or an ordinary call.
    const known = await raw({
      path,
      headers: { "content-type": "application/json", authorization: `Bearer ${fixture.token}` },
      body,
    });
    if (known.status < 300) {
      expect(fixture.vendors.openai.requests).toHaveLength(1);
      expectChat(
        fixture,
        fixture.vendors.openai,
        fixture.vendors.openai.only,
        MODELS.openai,
        false,
      );
      await fixture.stack.callOf(String(known.headers["x-svc-call-id"]));
    } else {
      expect(known.status).toBeGreaterThanOrEqual(400);
      expect(seen()).toBe(0);
    }
  });
});

describe("bodies that are none", () => {
  test.each([
    ["empty", ""],
    ["not JSON", "{"],
    ["a list", "[]"],
    ["null", "null"],
    ["a model that is a number", '{"model":7,"messages":[]}'],
    ["no model", '{"messages":[]}'],
    [
      "two models",
      '{"model":"nobody/x","messages":[{"role":"user","content":"Hi"}],"model":"openai/gpt-' +
        '4o-mini"}',
    ],
  ])("%s", async (_name, body) => {
    const { openai } = fixture.vendors;
    openai.always(openai.says({ text: ["Hello"] }));
    const answer = await raw({
      path: "/v1/chat/completions",
      headers: { authorization: `Bearer ${fixture.token}`, "content-type": "application/json" },
      body,
    });
    if (answer.status === 200) {
      // Then the upstream reads exactly what was evaluated.
      expect(openai.only.json["model"]).toBe("gpt-4o-mini");
      expect(openai.only.body).not.toContain("nobody");
    } else {
      expect(answer.status).toBe(400);
      expect(answer.message).toMatch(/\w/);
      expect(seen()).toBe(0);
    }
  });

  test("a compressed body is refused", async () => {
    const headers = {
      authorization: `Bearer ${fixture.token}`,
      "content-type": "application/json",
      "content-encoding": "gzip",
    };
    expect((await raw({ path: "/v1/chat/completions", headers, body: "xx" })).status).toBe(415);
    expect(seen()).toBe(0);
  });
});
