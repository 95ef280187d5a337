/**
 * One caller against all others: requests that are designed to crash, block, fill or confuse the
 * gateway.
 */
import http from "node:http";
import net from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answer, begin, requestBody } from "../support/client.ts";
import { useFixture } from "../support/fixture.ts";
import { preloadGateway } from "../support/preload.ts";
import { agentYaml } from "../support/resources.ts";
import { MODELS } from "../support/samples.ts";
import { Gate, until } from "../support/wait.ts";

const MIB = 1024 * 1024;
const UPLOAD_IDLE_SECONDS = 1;

const fixture = useFixture({
  env: preloadGateway("fault-preload.mjs"),
  args: ["--upload-idle", String(UPLOAD_IDLE_SECONDS)],
  providers: {
    openai: { spec: { fallbacks: [{ provider: "anthropic", model: MODELS.anthropic }] } },
  },
  files: () => ({
    "neighbour.yaml": agentYaml("neighbour", ["openai/*"]),
    "limited.yaml": agentYaml("limited", ["openai/*"], { requestsPerMinute: 1 }),
  }),
});

const openaiModel = `openai/${MODELS.openai}`;
let neighbour: string;
let gateway: number;

beforeAll(async () => {
  neighbour = await fixture.stack.token("neighbour");
  gateway = fixture.stack.pids().gateway;
});

/** After all attacks, it is still the same process. */
afterAll(() => {
  expect(fixture.stack.pids().gateway).toBe(gateway);
});

const ask = async (text: string, token = fixture.token, model = openaiModel): Promise<Answer> =>
  begin({ port: fixture.stack.port, token }, { dialect: "openai", model, text }).answer;

/** Another tenant's call succeeds. */
async function neighbourIsServed(): Promise<void> {
  const { openai } = fixture.vendors;
  openai.next(openai.says({ text: ["Hello"] }));
  expect((await ask("hi", neighbour)).status).toBe(200);
}

/** Sends raw bytes as a body of that length, with the agent's token. */
function upload(options: {
  readonly headers?: http.OutgoingHttpHeaders;
  readonly token?: string;
}): { readonly request: http.ClientRequest; readonly answer: Promise<Answer> } {
  const request = http.request({
    port: fixture.stack.port,
    host: "127.0.0.1",
    method: "POST",
    path: "/v1/chat/completions",
    agent: false,
    headers: {
      authorization: `Bearer ${options.token ?? fixture.token}`,
      "content-type": "application/json",
      ...options.headers,
    },
  });
  const answer = new Promise<Answer>((resolve, reject) => {
    request.on("error", reject);
    request.on("response", (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("error", reject);
      response.on("end", () => {
        const bytes = Buffer.concat(parts);
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          trailers: {},
          bytes,
          text: bytes.toString(),
          message: "",
        });
      });
    });
  });
  answer.catch(() => undefined);
  return { request, answer };
}

async function send(body: string | Buffer, token = fixture.token): Promise<Answer> {
  const { request, answer } = upload({
    token,
    headers: { "content-length": Buffer.byteLength(body) },
  });
  request.end(body);
  return answer;
}

const code = (answer: Answer): unknown =>
  (JSON.parse(answer.text) as { error: { code: unknown } }).error.code;

describe("a defect fails one request and nothing else", () => {
  const defects = async (part: string): Promise<number> =>
    (await fixture.stack.metrics()).sum("svc_defects_total", { part });

  test("in a later attempt: the translation for a fallback throws", async () => {
    const { openai, anthropic } = fixture.vendors;
    openai.always(openai.fails({ status: 503, message: "busy" }));
    anthropic.always(anthropic.says({ text: ["Hello"] }));
    const before = await defects("attempt");
    const answer = await ask("fault-injected-by-a-test");
    expect([500, 503]).toContain(answer.status);
    expect(await defects("attempt")).toBeGreaterThan(before);
    const line = /"part":"attempt","error":"RangeError: injected\\n {4}at /;
    await until(() => line.test(fixture.stack.logs), { what: "the stack to be logged" });
    openai.reset();
    await neighbourIsServed();
    await fixture.stack.idle();
  });

  test("in the first attempt", async () => {
    const before = await defects("llm");
    const model = `anthropic/${MODELS.anthropic}`;
    const answer = await ask("fault-injected-by-a-test", fixture.token, model);
    expect(answer.status).toBe(500);
    expect(await defects("llm")).toBe(before + 1);
    await neighbourIsServed();
    await fixture.stack.idle();
  });
});

describe("bodies that cost more than they look", () => {
  const message = { role: "user", content: "hi" };
  const nested = (depth: number): string => `${"[".repeat(depth)}${"]".repeat(depth)}`;
  const deepSchema = (depth: number): string => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;

  test.each<readonly [string, () => string, RegExp]>([
    ["29 MiB of opening brackets", () => "[".repeat(29 * MIB), /nesting of more than 128 levels/],
    [
      "a deep tool schema",
      () =>
        `{"model":"${openaiModel}","messages":[${JSON.stringify(message)}],"tools":` +
        `[${deepSchema(5_000)}]}`,
      /nesting of more than 128 levels/,
    ],
    ["deep arrays", () => `{"model":"${openaiModel}","x":${nested(200)}}`, /128 levels/],
    [
      "6 MiB of members",
      () => `{${Array.from({ length: 500_000 }, (_, n) => `"k${n}":1`).join()},"model":"m"}`,
      /an object of more than 256 members/,
    ],
    [
      "millions of values",
      () => `{"model":"${openaiModel}","x":[${"1,".repeat(2_000_000)}1]}`,
      /more than 400000 keys and values/,
    ],
    [
      "a key twice",
      () => `{"model":"${openaiModel}","Model":"gpt-expensive","messages":[]}`,
      /the key \\"Model\\" occurs twice/,
    ],
    ["a cut body", () => `{"model":"${openaiModel}"`, /unexpected end/],
    ["escapes without end", () => `{"model":"${"\\".repeat(20 * MIB)}`, /closing quote/],
  ])("%s is refused", async (_name, body, problem) => {
    const answer = await send(body());
    expect(answer.status).toBe(400);
    expect(answer.text).toMatch(problem);
    expect(answer.headers["x-svc-call-id"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(fixture.vendors.openai.requests).toHaveLength(0);
    await neighbourIsServed();
  });
});

describe("names", () => {
  test.each<readonly [string, () => string]>([
    ["of 31 MiB", () => "m".repeat(31 * MIB)],
    ["with a control character", () => "openai/gpt\u0007"],
    ["with a line end", () => 'openai/gpt\n"x'],
    ["in another script", () => "openai/gрt-4"],
  ])("a model %s is refused and leaves no label", async (_name, name) => {
    const answer = await send(requestBody({ dialect: "openai", model: name() }));
    expect([answer.status, code(answer)]).toEqual([400, "invalid_request"]);
    expect((await fixture.stack.metrics()).text.length).toBeLessThan(MIB);
    await neighbourIsServed();
  });

  test("beyond the first 100 models of a provider, the label is other", async () => {
    const { openai } = fixture.vendors;
    openai.always(openai.says({ text: ["Hello"] }));
    for (let n = 0; n < 130; n++) {
      const answer = await ask("hi", fixture.token, `openai/invented-${n}`);
      expect(answer.status).toBe(200);
    }
    const { text } = await fixture.stack.metrics();
    const models = new Set(
      [...text.matchAll(/model="([^"]+)",provider="openai"/g)].map((m) => m[1]),
    );
    expect(models.size).toBeLessThanOrEqual(101);
    expect(models).toContain("other");
  });
});

describe("limits before bodies", () => {
  test("a caller over its rate is refused before it sends its body", async () => {
    const token = await fixture.stack.token("limited");
    const { openai } = fixture.vendors;
    openai.always(openai.says({ text: ["Hello"] }));
    expect((await ask("hi", token)).status).toBe(200);
    const { request, answer } = upload({ token, headers: { "content-length": 20 * MIB } });
    request.flushHeaders();
    const refused = await answer;
    expect([refused.status, code(refused)]).toEqual([429, "requests_per_minute_exceeded"]);
    request.destroy();
  });

  test("a body that is announced as too large is refused before it is sent", async () => {
    const { request, answer } = upload({ headers: { "content-length": 33 * MIB } });
    request.flushHeaders();
    expect((await answer).status).toBe(413);
    request.destroy();
  });

  test("one caller's unfinished uploads are bounded, and others find room", async () => {
    const begun = Array.from({ length: 6 }, () =>
      upload({ headers: { "content-length": 31 * MIB } }),
    );
    for (const { request } of begun) {
      request.flushHeaders();
      request.write('{"model":');
    }
    // On a slow machine, an upload that was let in may time out before another one is refused.
    const refused = await Promise.any(
      begun.map(async ({ answer }) => {
        const ended = await answer;
        expect([ended.status, code(ended)]).toEqual([429, "bytes_in_flight_exceeded"]);
        return ended;
      }),
    );
    expect(refused.headers["retry-after"]).toBe("1");
    await neighbourIsServed();
    for (const { request } of begun) request.destroy();
    await until(
      async () => (await fixture.stack.metrics()).sum("svc_request_bytes_in_flight") === 0,
      { what: "the bytes to be given back" },
    );
  });

  test("an upload that stops ends with 408", async () => {
    const { request, answer } = upload({ headers: { "content-length": 1_000 } });
    request.write('{"model":');
    const ended = await answer;
    expect([ended.status, code(ended)]).toEqual([408, "request_timeout"]);
    request.destroy();
  });

  test("an upload that trickles ends with 408", async () => {
    const { request, answer } = upload({ headers: { "content-length": 1_000 } });
    request.write('{"model":');
    const drip = setInterval(() => request.write(" "), (UPLOAD_IDLE_SECONDS * 1_000) / 5);
    const ended = await answer;
    clearInterval(drip);
    expect([ended.status, code(ended)]).toEqual([408, "request_timeout"]);
    request.destroy();
    await neighbourIsServed();
  });

  test("an answer that takes longer than an upload may pause is waited for", async () => {
    const { openai } = fixture.vendors;
    const gate = new Gate();
    openai.always(openai.says({ text: ["Hello"], hold: { gate, before: "start" } }));
    const exchange = begin(
      { port: fixture.stack.port, token: fixture.token },
      { dialect: "openai", model: openaiModel, stream: true },
    );
    await gate.reached;
    // Another request is ended meanwhile for its pause: as much time has passed for this one.
    const { request, answer } = upload({ headers: { "content-length": 1_000 } });
    request.write("{");
    expect((await answer).status).toBe(408);
    request.destroy();
    gate.open();
    expect((await exchange.answer).status).toBe(200);
  });
});

test("a client's own x-request-id cannot speak for another's call", async () => {
  const { openai } = fixture.vendors;
  const gate = new Gate();
  openai.next(
    async (request, response) => {
      await gate.pass();
      await openai.fails({ status: 503, message: "busy" })(request, response);
    },
    openai.says({ text: ["Hello"] }),
  );
  const victim = ask("hi", neighbour);
  const { headers } = await openai.request();
  const id = String(headers["x-request-id"]);
  for (const path of ["/v1/nothing-here", "/v1/chat/completions", "/v1/models"]) {
    const response = await fetch(`${fixture.stack.baseUrl}${path}`, {
      headers: { "x-request-id": id },
    });
    expect(response.status).toBeGreaterThanOrEqual(400);
    await response.arrayBuffer();
  }
  gate.open();
  expect((await victim).status).toBe(200);
  const line = await fixture.stack.callOf(id);
  expect(line["attempts"]).toMatchObject([{ failure: { status: 503 } }, {}]);
});

test("headers that never end are cut off", async () => {
  const socket = net.connect(fixture.stack.port, "127.0.0.1");
  socket.on("error", () => undefined);
  const closed = new Promise((resolve) => socket.on("close", resolve));
  socket.write("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n");
  for (let n = 0; n < 4_000; n++) socket.write(`x-${n}: ${"y".repeat(50)}\r\n`);
  await closed;
  await neighbourIsServed();
});
