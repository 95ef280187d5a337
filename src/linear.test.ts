/**
 * Every parser of bytes from a client, an agent or an upstream takes at most linear time, also for
 * shapes that are designed to be expensive.
 */
import { describe, expect, test } from "vitest";
import { compileClientAddress } from "./access/client-address.ts";
import { readCredential } from "./access/credentials.ts";
import { disguisedCredential } from "./binding/disguised.ts";
import { isAmbiguousPath } from "./providers/url-path.ts";
import { readRequest } from "./binding/request.ts";
import { GrpcMessages } from "./envoy/grpc/messages.ts";
import { decodePhase } from "./envoy/ext-proc/decode.ts";
import type { DialectName } from "./llm/dialects/dialect.ts";
import { passRequest } from "./llm/dialects/pass-request.ts";
import { createStreamReader, dialects, translateRequest } from "./llm/dialects/registry.ts";
import { SseParser } from "./llm/dialects/sse.ts";
import { JsonBody } from "./llm/request/json-body.ts";
import { estimatePromptTokens } from "./llm/request/prompt-size.ts";
import { restrictedFields } from "./llm/request/restricted-fields.ts";
import { retryAfterMs } from "./llm/attempts/retry-after.ts";
import { parseRoute } from "./llm/request/routes.ts";
import { scanJson } from "./platform/json/scan.ts";
import type { ProviderPlugin, ServiceRequest } from "./providers/contract.ts";
import { type ContractSample, context } from "./providers/testing.ts";
import { expectLinear } from "./platform/testing-work.ts";

/** A shape of a given size: about as many bytes, or parts. */
type Shape<T> = readonly [name: string, make: (size: number) => T];

const repeat = (count: number, part: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => part(n)).join("");
const list = (count: number, part: (n: number) => string): string =>
  `[${Array.from({ length: count }, (_, n) => part(n)).join()}]`;

const JSON_TEXTS: readonly Shape<string>[] = [
  ["opening brackets", (size) => "[".repeat(size)],
  ["balanced brackets in a row", (size) => `[${"[],".repeat(size / 3)}[]]`],
  ["members", (size) => `{${repeat(size / 8, (n) => `"k${n}":1,`)}"z":1}`],
  ["members of an inner object", (size) => `[{${repeat(size / 8, (n) => `"k${n}":1,`)}"z":1}]`],
  ["members whose keys hash alike", (size) => `[{${repeat(size / 9, alike)}"z":1}]`],
  ["objects of sixteen members", (size) => list(size / 120, () => SIXTEEN)],
  ["backslashes", (size) => `"${"\\".repeat(size)}"`],
  ["backslashes without an end", (size) => `"${"\\".repeat(size)}`],
  ["quotes that are escaped", (size) => `"${'\\"'.repeat(size / 2)}"`],
  ["quotes far apart that are escaped", (size) => `"${`${"x".repeat(99)}\\"`.repeat(size / 100)}"`],
  ["empty strings", (size) => `[${'"",'.repeat(size / 3)}""]`],
  ["a key of escapes", (size) => `[{"${"\\u0061".repeat(size / 6)}":1}]`],
  ["white space", (size) => `${" ".repeat(size)}{}`],
  ["digits", (size) => "1".repeat(size)],
  ["members with a quote at the end only", (size) => `{"a":${"1".repeat(size)}"}`],
];

const SIXTEEN = `{${Array.from({ length: 16 }, (_, n) => `"k${n}":1`).join()}}`;

/** Pairs of characters with the same hash for a factor of 31: `Aa` and `BB`. */
function alike(n: number): string {
  const bits = n.toString(2).padStart(16, "0");
  return `"${bits.replaceAll("0", "Aa").replaceAll("1", "BB")}":1,`;
}

describe("JSON", () => {
  test.each(JSON_TEXTS)("%s", (_name, make) => {
    expectLinear((size) => {
      const bytes = Buffer.from(make(size));
      return () => scanJson(bytes);
    }, 4_000);
  });
});

const CHAT_BODIES: readonly Shape<object>[] = [
  [
    "messages",
    (n) => ({ messages: many(n, (i) => ({ role: i % 2 ? "assistant" : "user", content: "x" })) }),
  ],
  ["messages of one role", (n) => ({ messages: many(n, () => ({ role: "user", content: "x" })) })],
  [
    "system messages",
    (n) => ({ messages: [...many(n, () => ({ role: "system", content: "x" })), USER] }),
  ],
  [
    "parts",
    (n) => ({
      messages: [{ role: "user", content: many(n, () => ({ type: "text", text: "x" })) }],
    }),
  ],
  ["images", (n) => ({ messages: [{ role: "user", content: many(n, () => IMAGE) }] })],
  ["tools", (n) => ({ messages: [USER], tools: many(n, tool) })],
  ["tool calls and their results", (n) => ({ messages: [USER, ...callsAndResults(n)] })],
  ["results in the other order", (n) => ({ messages: [USER, ...callsAndResults(n, true)] })],
  ["stop sequences", (n) => ({ messages: [USER], stop: many(n, () => "x") })],
  ["unknown members of messages", (n) => ({ messages: many(n, () => ({ ...USER, extra: 1 })) })],
  ["one long text", (n) => ({ messages: [{ role: "user", content: "x".repeat(n * 100) }] })],
  [
    "tools with much beside their schema",
    (n) => ({ messages: [USER], tools: [{ ...tool(0), more: many(n, () => ({ a: 1 })) }] }),
  ],
];

const USER = { role: "user", content: "hi" };
const IMAGE = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
const many = <T>(count: number, part: (n: number) => T): T[] =>
  Array.from({ length: Math.floor(count) }, (_, n) => part(n));
const tool = (n: number) => ({ type: "function", function: { name: `f${n}`, parameters: {} } });

function callsAndResults(count: number, reversed = false): object[] {
  const calls = many(count, (n) => ({
    id: `call_${n}`,
    type: "function",
    function: { name: "f", arguments: "{}" },
  }));
  const results = calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "x" }));
  return [
    { role: "assistant", content: null, tool_calls: calls },
    ...(reversed ? results.toReversed() : results),
  ];
}

describe("a chat request", () => {
  const route = parseRoute("/v1/chat/completions");
  if (route === undefined) throw new Error("no route");

  test.each(CHAT_BODIES)("of many %s", (_name, make) => {
    const body = (size: number): JsonBody =>
      JsonBody.read(Buffer.from(JSON.stringify({ model: "m", ...make(size) })));
    expectLinear((size) => {
      const read = body(size);
      return () => {
        estimatePromptTokens(read.size);
        restrictedFields(route, read);
        passRequest(dialects.openai, read, { model: "other", stream: true });
      };
    }, 200);
    for (const to of ["anthropic", "gemini"] as const) {
      expectLinear((size) => {
        const read = body(size);
        const { value } = read;
        return () =>
          translateRequest({
            from: "openai",
            to,
            body: value,
            model: "m",
            stream: false,
            mode: "lenient",
          });
      }, 200);
    }
  });
});

describe("a request of the Responses API", () => {
  const route = parseRoute("/v1/responses");
  if (route === undefined) throw new Error("no route");
  const call = (n: number) => ({
    type: "function_call",
    call_id: `call_${n}`,
    name: "f",
    arguments: "{}",
  });
  const result = (n: number) => ({
    type: "function_call_output",
    call_id: `call_${n}`,
    output: "x",
  });
  const thought = {
    type: "reasoning",
    summary: [{ type: "summary_text", text: "x" }],
    encrypted_content: "svc-foreign:anthropic:own:x",
  };
  const part = { type: "input_text", text: "x" };
  const custom = (n: number) => ({ type: "custom", name: `tool_${n}` });

  test.each<Shape<object>>([
    ["messages", (n) => ({ input: many(n, () => USER) })],
    ["parts", (n) => ({ input: [{ role: "assistant", content: many(n, () => part) }] })],
    ["answers", (n) => ({ input: many(n, () => ({ role: "assistant", content: [part] })) })],
    ["calls and results", (n) => ({ input: [...many(n, call), ...many(n, result)] })],
    ["reasoning items", (n) => ({ input: many(n, () => thought) })],
    ["tools", (n) => ({ input: "x", tools: many(n, custom) })],
    [
      "tools of a namespace",
      (n) => ({ input: "x", tools: [{ type: "namespace", name: "n", tools: many(n, custom) }] }),
    ],
  ])("of many %s", (_name, make) => {
    const body = (size: number): JsonBody =>
      JsonBody.read(Buffer.from(JSON.stringify({ model: "m", ...make(size) })));
    expectLinear((size) => {
      const read = body(size);
      return () => {
        restrictedFields(route, read);
        dialects.responses.readEcho?.(read);
        passRequest(dialects.responses, read, { model: "other", stream: true });
      };
    }, 200);
    for (const to of ["openai", "anthropic", "gemini"] as const) {
      expectLinear((size) => {
        const { value } = body(size);
        return () =>
          translateRequest({
            from: "responses",
            to,
            body: value,
            model: "m",
            stream: false,
            mode: "lenient",
          });
      }, 200);
    }
  });
});

const DELTAS: Readonly<Record<DialectName, string>> = {
  openai: 'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n',
  anthropic:
    "event: content_block_delta\ndata: " +
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}\n\n',
  gemini: 'data: {"candidates":[{"content":{"parts":[{"text":"x"}]}}]}\n\n',
};

const STREAMS: readonly Shape<(delta: string) => Buffer[]>[] = [
  ["events, each in a chunk", (n) => (delta) => many(n, () => Buffer.from(delta))],
  ["events in one chunk", (n) => (delta) => [Buffer.from(delta.repeat(n))]],
  ["bytes, each in a chunk", (n) => (delta) => split(delta.repeat(n / 40), 1)],
  [
    "one event that never ends, in small chunks",
    (n) => () => split(`data: "${"x".repeat(n * 4)}`, 3),
  ],
  ["one event that never ends, byte by byte", (n) => () => split(`data: "${"x".repeat(n)}`, 1)],
  ["lines without an event", (n) => () => split(": comment\n".repeat(n), 64)],
  ["blank lines", (n) => () => split("\n".repeat(n), 7)],
  ["carriage returns", (n) => () => split("\r".repeat(n), 7)],
  ["data lines of one event", (n) => () => [Buffer.from(`${"data: x\n".repeat(n)}\n`)]],
  [
    "quotes that are escaped",
    (n) => (delta) => [Buffer.from(delta.replace('"x"', `"${'\\"'.repeat(n)}"`))],
  ],
];

function split(text: string, size: number): Buffer[] {
  const bytes = Buffer.from(text);
  return many(Math.ceil(bytes.length / size), (n) => bytes.subarray(n * size, (n + 1) * size));
}

describe("a stream", () => {
  test.each(STREAMS)("of %s", (_name, make) => {
    for (const upstream of ["openai", "anthropic", "gemini"] as const) {
      for (const client of ["openai", "anthropic", "gemini", "responses"] as const) {
        expectLinear((size) => {
          const chunks = make(size)(DELTAS[upstream]);
          return () => {
            const options = { upstream, client, wantsUsage: true, model: "m", id: "i", now: 0 };
            const reader = createStreamReader(options);
            for (const chunk of chunks) reader.push(chunk);
            reader.end();
          };
        }, 300);
      }
    }
    expectLinear((size) => {
      const chunks = make(size)(DELTAS.openai);
      return () => {
        const parser = new SseParser();
        for (const chunk of chunks) parser.push(chunk);
        parser.end();
      };
    }, 300);
  });
});

describe("headers, paths and addresses", () => {
  const texts: readonly Shape<string>[] = [
    ["spaces", (size) => `Bearer${" ".repeat(size)}`],
    ["spaces and a word", (size) => `Bearer${" ".repeat(size)}x${" ".repeat(size)}y`],
    ["digits", (size) => "1".repeat(size)],
    ["digits and dots", (size) => "1.".repeat(size / 2)],
    ["commas", (size) => ",".repeat(size)],
    ["addresses", (size) => "10.0.0.1, ".repeat(size / 10)],
    ["slashes", (size) => `/v1/models/${"/".repeat(size)}:generateContent`],
    ["colons", (size) => `/v1beta/models/${":".repeat(size)}`],
    ["models without an end", (size) => "/v1/models/x:generateContent".repeat(size / 28)],
    [
      "percent signs",
      (size) => `/v1/models/${"%41".repeat(size / 3)}:countTokens?${"%26".repeat(size / 3)}`,
    ],
    ["parameters", (size) => `/v1/messages?${"key=a&".repeat(size / 6)}`],
    ["version prefixes", (size) => `/ext${"/v1".repeat(size / 3)}/messages`],
  ];
  const clientAddress = compileClientAddress(["10.0.0.0/8", "::ffff:0:0/96"]);

  test.each(texts)("of many %s", (_name, make) => {
    expectLinear((size) => {
      const text = make(size);
      return () => {
        readCredential(
          new Map([
            ["authorization", text],
            ["x-api-key", text],
          ]),
          text,
        );
        parseRoute(text);
        clientAddress("10.0.0.1", text);
        clientAddress(text, undefined);
        retryAfterMs({ retryAfter: text, retryAfterMs: text }, 0);
      };
    }, 2_000);
  });
});

describe("a request of an agent", () => {
  const targets: readonly Shape<string>[] = [
    ["segments", (size) => `/${"a/".repeat(size / 2)}`],
    ["slashes", (size) => "/".repeat(size)],
    ["encoded slashes", (size) => `/${"%2F".repeat(size / 3)}`],
    ["percent signs", (size) => `/${"%25".repeat(size / 3)}`],
    ["dots", (size) => `/${".".repeat(size)}`],
    ["dashes and dots", (size) => `/${"-.".repeat(size / 2)}`],
    ["colons", (size) => `/${":".repeat(size)}`],
    ["parameters", (size) => `/?${"a=b&".repeat(size / 4)}`],
    ["empty parameters", (size) => `/?${"&".repeat(size)}`],
    ["brackets in parameters", (size) => `/?${"a[b]".repeat(size / 4)}=1`],
    ["encoded parameters", (size) => `/?${"%61=".repeat(size / 4)}`],
    ["repository names", (size) => `/repos/${"o/r/".repeat(size / 4)}`],
  ];
  const bodies: readonly Shape<readonly [type: string, body: string]>[] = [
    ["JSON objects", (size) => ["application/json", list(size / 10, () => '{"a":"b"}')]],
    ["a deep JSON object", (size) => ["application/json", `${'{"a":'.repeat(size / 5)}1`]],
    ["JSON strings", (size) => ["application/json", `{"query":"${"a ".repeat(size / 2)}"}`]],
    ["form parameters", (size) => ["application/x-www-form-urlencoded", "a=b&".repeat(size / 4)]],
    [
      "XML",
      (size) => [
        "application/xml",
        `<Delete>${"<Object><Key>k</Key></Object>".repeat(size / 29)}</Delete>`,
      ],
    ],
    ["open XML", (size) => ["application/xml", "<Delete>".repeat(size / 8)]],
    [
      "XML entities",
      (size) => [
        "application/xml",
        `<Delete><Object><Key>${"&amp;".repeat(size / 5)}</Key></Object></Delete>`,
      ],
    ],
    ["GraphQL fields", (size) => graphql(`{${repeat(size / 20, (n) => ` a${n}:viewer{login}`)}}`)],
    [
      "GraphQL fragments",
      (size) =>
        graphql(`
          {
            viewer {
              ...f0
            }
          }
          ${repeat(size / 40, (n) => ` fragment f${n} on User{...f${n + 1}}`)}
        `),
    ],
    [
      "GraphQL fragments that each name two",
      (size) =>
        graphql(`
          {
            viewer {
              ...f0
            }
          }
          ${repeat(size / 40, (n) => ` fragment f${n} on User{...f${n + 1} ...f${n + 1}}`)}
        `),
    ],
    ["open GraphQL", (size) => graphql("{a".repeat(size / 2))],
    [
      "GraphQL arguments",
      (size) =>
        graphql(
          `{repository(owner:"o",name:` +
            `"r"){${repeat(size / 40, (n) => ` a${n}:issue(number:${n}){id}`)}}}`,
        ),
    ],
    [
      "multipart boundaries",
      (size) => ["multipart/form-data; boundary=x", "--x\r\n\r\na\r\n".repeat(size / 10)],
    ],
    [
      "links in text",
      (size) => [
        "application/json",
        JSON.stringify({
          channel: "C1",
          text: "https://a.slack.com/archives/C2/p1 ".repeat(size / 36),
        }),
      ],
    ],
  ];

  for (const name of ["github", "aws", "gcp", "azure", "discord", "slack"]) {
    describe(`to ${name}`, () => {
      test.each(targets)("with a target of many %s", async (_name, make) => {
        const judge = await judgeOf(name);
        expectLinear((size) => judge(make(size), undefined), 1_500);
      });
      test.each(bodies)("with a body of many %s", async (_name, make) => {
        const judge = await judgeOf(name);
        expectLinear((size) => judge(undefined, make(size)), 1_500);
      });
    });
  }
});

const graphql = (query: string) => ["application/json", JSON.stringify({ query })] as const;

type Judge = (
  target: string | undefined,
  body: readonly [type: string, body: string] | undefined,
) => () => unknown;

/** Every request of the plugins' samples, with another target or another body. */
async function judgeOf(name: string): Promise<Judge> {
  const { plugin } = (await import(`./providers/${name}/plugin.ts`)) as { plugin: ProviderPlugin };
  const { sample } = (await import(`./providers/${name}/contract-sample.ts`)) as {
    sample: ContractSample;
  };
  const [authType, { secrets, config = {} }] = Object.entries(sample.auth)[0] as [
    string,
    { secrets: Record<string, string>; config?: Record<string, string> },
  ];
  const instance = plugin.create(context({ authType, secrets, config }));
  const hosts = [...new Set(sample.requests.map(({ request }) => request.host))];
  const graphqlPaths = name === "github" ? ["/graphql"] : [];
  const paths = [
    ...new Set([...sample.requests.map(({ request }) => request.path), ...graphqlPaths]),
  ];
  return (target, body) => {
    const requests = hosts.flatMap((host) =>
      (target === undefined ? paths : [target]).map((at): ServiceRequest => {
        const [path = "/", query = ""] = at.split("?", 2);
        return {
          method: body === undefined ? "GET" : "POST",
          host,
          path,
          query,
          headers: new Map([["content-type", body?.[0] ?? "text/plain"]]),
          body: body === undefined ? undefined : Buffer.from(body[1]),
        };
      }),
    );
    const known = { credentialQuery: ["access_token"] };
    return () => {
      for (const request of requests) {
        instance.resolveAction(request);
        disguisedCredential(request, known);
        isAmbiguousPath(request.path);
      }
      if (target !== undefined) {
        readRequest({
          method: "GET",
          target,
          authority: "api.github.com",
          headers: [["cookie", target]],
          body: undefined,
          serverName: "api.github.com",
        });
      }
    };
  };
}

describe("Envoy's messages", () => {
  test("cut into frames of every size", () => {
    for (const frame of [1, 7, 1_000]) {
      expectLinear((size) => {
        const message = Buffer.alloc(size);
        const framed = Buffer.concat([Buffer.from([0, 0, 0, size >> 8, size & 255]), message]);
        const parts = many(Math.ceil(framed.length / frame), (n) =>
          framed.subarray(n * frame, (n + 1) * frame),
        );
        return () => {
          const messages = new GrpcMessages(1 << 20);
          for (const part of parts) messages.push(part, () => undefined);
        };
      }, 8_000);
    }
  });

  test("of many headers", () => {
    expectLinear((size) => {
      // ProcessingRequest.request_headers.headers.headers { key, raw_value }
      const header = Buffer.from([0x0a, 6, 0x0a, 1, 0x61, 0x1a, 1, 0x62]);
      const map = Buffer.concat(many(size, () => header));
      const inner = Buffer.concat([Buffer.from([0x0a]), varint(map.length), map]);
      const message = Buffer.concat([Buffer.from([0x12]), varint(inner.length), inner]);
      return () => decodePhase(message);
    }, 500);
  });
});

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest >>= 7) bytes.push((rest & 127) | 128);
  return Buffer.from([...bytes, rest]);
}

test("what is measured runs: a text that is refused at once would be linear too", () => {
  expect(() => scanJson(Buffer.from("[".repeat(10)))).toThrow(/unexpected end/);
});
