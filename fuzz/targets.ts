/**
 * Fuzzing of every parser of bytes from a client, an agent, an upstream or a file. A target is a
 * property; if a second implementation exists, both must agree.
 */
import packet from "dns-packet";
import { createParser } from "eventsource-parser";
import * as fc from "fast-check";
import { compileClientAddress } from "../src/access/client-address.ts";
import { readCredential } from "../src/access/credentials.ts";
import { Rcode, readQuery, writeReply } from "../src/binding/dns/message.ts";
import { readRequest } from "../src/binding/request.ts";
import { decodeLogEntries } from "../src/envoy/access-log/wire.ts";
import { decodeSecretRequest } from "../src/envoy/sds/wire.ts";
import { decodeCheckRequest } from "../src/envoy/ext-authz/wire.ts";
import { GrpcMessages } from "../src/envoy/grpc/messages.ts";
import { decodePhase } from "../src/envoy/ext-proc/decode.ts";
import { WireError } from "../src/envoy/protobuf/reader.ts";
import { BadRequestError, type DialectName, type WireFormat } from "../src/llm/dialects/dialect.ts";
import {
  createStreamReader,
  dialects,
  translateError,
  translateRequest,
  translateResponse,
  UpstreamFormatError,
} from "../src/llm/dialects/registry.ts";
import {
  passToGemini,
  translateEmbeddings,
  translateEmbeddingsAnswer,
} from "../src/llm/dialects/embeddings/translate.ts";
import { passRequest } from "../src/llm/dialects/pass-request.ts";
import { SseParser } from "../src/llm/dialects/sse.ts";
import { requests, responses } from "./samples.ts";
import { streams, toSse } from "../src/llm/dialects/testdata/fixtures/streams.ts";
import { JsonBody } from "../src/llm/request/json-body.ts";
import { estimatePromptTokens } from "../src/llm/request/prompt-size.ts";
import { restrictedFields } from "../src/llm/request/restricted-fields.ts";
import { retryAfterMs } from "../src/llm/attempts/retry-after.ts";
import { parseRoute } from "../src/llm/request/routes.ts";
import { canonicalAddress } from "../src/platform/cidr.ts";
import { parseDuration } from "../src/platform/duration.ts";
import { parseJson } from "../src/platform/json/parse.ts";
import { JsonError } from "../src/platform/json/scan.ts";
import type { ProviderInstance, ServiceRequest } from "../src/providers/contract.ts";
import { deletedObjects } from "../src/providers/aws/s3-delete.ts";
import { parseDocuments } from "../src/resources/parse.ts";
import { chunked, cuts, damaged, jsonText, near, oddText } from "./arbitraries.ts";
import { instances } from "./plugins.ts";

const EDNS: packet.OptAnswer = {
  type: "OPT",
  name: ".",
  udpPayloadSize: 1_232,
  extendedRcode: 0,
  ednsVersion: 0,
  flags: 0,
  flag_do: false,
  options: [],
};

const DIALECTS: readonly DialectName[] = ["openai", "anthropic", "gemini"];
const dialect = fc.constantFrom(...DIALECTS);
/** Formats of clients. */
const format = fc.constantFrom<WireFormat[]>(...DIALECTS, "responses");

/** Runs `action`; any error but those of `expected` is a finding. */
function only(
  expected: readonly (abstract new (...args: never[]) => Error)[],
  action: () => unknown,
) {
  try {
    action();
  } catch (error) {
    if (!expected.some((kind) => error instanceof kind)) throw error;
  }
}

const jsonBytes = damaged(
  fc.oneof(jsonText, fc.string(), oddText).map((text) => Buffer.from(text)),
);

function parsed(bytes: Buffer): { readonly value: unknown } | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** Cases in which our scanner is deliberately stricter than JSON.parse. */
const STRICTER =
  /occurs twice|"__proto__"|nesting of|more than \d+|malformed escape in a key|begins with an escape/;

/** Writes JSON in which `escape` decides for each character of a key whether it is escaped. */
function withEscapedKeys(value: unknown, escape: () => boolean): string {
  if (Array.isArray(value)) return `[${value.map((item) => withEscapedKeys(item, escape)).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, inner]) => {
    const written = key
      .split("")
      .map((unit) => (escape() ? unicodeEscape(unit) : JSON.stringify(unit).slice(1, -1)))
      .join("");
    return `"${written}":${withEscapedKeys(inner, escape)}`;
  });
  return `{${members.join()}}`;
}

function unicodeEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

export const TARGETS: Readonly<Record<string, () => fc.IRawProperty<unknown>>> = {
  "JSON against JSON.parse": () =>
    fc.property(jsonBytes, (bytes) => {
      const reference = parsed(bytes);
      try {
        const { value, members, escapedKeys } = parseJson(bytes);
        if (reference === undefined) throw new Error("accepted");
        // JSON.parse itself is unreliable for these: see docs/decisions.
        if (escapedKeys.length > 0) return;
        if (JSON.stringify(value) !== JSON.stringify(reference.value)) throw new Error("another");
        const object = value as Record<string, unknown>;
        for (const { key, valueStart, valueEnd } of members ?? []) {
          const own = JSON.parse(bytes.toString("utf8", valueStart, valueEnd)) as unknown;
          if (JSON.stringify(own) !== JSON.stringify(object[key]))
            throw new Error(`another ${key}`);
        }
        const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
        if (isObject !== (members !== undefined)) throw new Error("not the same kind");
        if (isObject && Object.keys(value).length !== members?.length) {
          throw new Error("not all members");
        }
      } catch (error) {
        if (!(error instanceof JsonError)) throw error;
        if (reference !== undefined && !STRICTER.test(error.message)) throw error;
      }
    }),

  "JSON whose keys are written with escapes": () =>
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.infiniteStream(fc.boolean()), (value, escape) => {
      const text = withEscapedKeys(value, () => escape.next().value === true);
      only([JsonError], () => {
        const found = parseJson(Buffer.from(text)).value;
        if (JSON.stringify(found) !== JSON.stringify(value)) throw new Error(`misread: ${text}`);
      });
    }),

  "bodies that pass keep their meaning": () =>
    fc.property(
      format,
      fc.dictionary(oddText, fc.jsonValue({ maxDepth: 3 })),
      fc.string(),
      (name, object, model) => {
        only([BadRequestError], () => {
          const body = JsonBody.read(Buffer.from(JSON.stringify(object)));
          const out = passRequest(dialects[name], body, { model, stream: false }) ?? [body.raw];
          const expected = name === "gemini" ? body.value : { ...body.value, model };
          const result = JSON.parse(Buffer.concat(out).toString()) as Record<string, unknown>;
          for (const key of Object.keys(expected)) {
            if (JSON.stringify(result[key]) !== JSON.stringify(expected[key]))
              throw new Error(`${key} changed`);
          }
        });
      },
    ),

  "requests of every dialect into every other": () =>
    fc.property(
      format.chain((from) => fc.tuple(fc.constant(from), near(requests[from]))),
      dialect,
      ([from, body], to) => {
        only([BadRequestError], () =>
          translateRequest({ from, to, body, model: "m", stream: false, mode: "lenient" }),
        );
        only([BadRequestError], () => {
          const read = JsonBody.read(Buffer.from(JSON.stringify(body) ?? "null"));
          const route = parseRoute("/v1/chat/completions");
          if (route !== undefined) restrictedFields({ ...route, dialect: from }, read);
          dialects[from].readFacts(read);
          dialects[from].readEcho?.(read);
          estimatePromptTokens(read.size);
        });
      },
    ),

  "answers of every dialect into every other": () =>
    fc.property(
      dialect.chain((upstream) => fc.tuple(fc.constant(upstream), near(responses[upstream]))),
      format,
      ([upstream, body], client) => {
        dialects[upstream].readUsage(body);
        only([UpstreamFormatError], () =>
          translateResponse({ upstream, client, body, model: "m", id: "i", now: 0 }),
        );
      },
    ),

  "embeddings of both dialects into each other": () =>
    fc.property(
      fc.constantFrom("openai" as const, "gemini" as const),
      fc.boolean(),
      near([
        { model: "m", input: ["a", "b"], dimensions: 2, encoding_format: "base64", user: "u" },
        { requests: [{ model: "m", content: { parts: [{ text: "a" }] }, taskType: "x" }] },
        { content: { role: "user", parts: [{ text: "a" }] }, outputDimensionality: 2 },
        { data: [{ object: "embedding", index: 0, embedding: [0.5] }] },
        { embeddings: [{ values: [0.5] }] },
      ]),
      (from, single, body) => {
        const to = from === "openai" ? "gemini" : "openai";
        only([BadRequestError], () =>
          translateEmbeddings({ from, to, body, single, model: "m", mode: "lenient" }),
        );
        only([UpstreamFormatError], () =>
          translateEmbeddingsAnswer({
            upstream: to,
            client: from,
            body,
            single,
            model: "m",
            inputTokens: 1,
            echo: undefined,
          }),
        );
        only([BadRequestError], () => {
          const read = JsonBody.read(Buffer.from(JSON.stringify(body) ?? "null"));
          passToGemini(read.value, "m", single);
        });
      },
    ),

  "errors of every dialect into every other": () =>
    fc.property(
      dialect,
      format,
      fc.integer({ min: 400, max: 599 }),
      jsonBytes,
      (upstream, client, status, body) => {
        JSON.parse(translateError({ upstream, client, status, body }).body.toString());
      },
    ),

  "streams, however they are cut": () =>
    fc.property(
      dialect.chain((upstream) =>
        fc.tuple(
          fc.constant(upstream),
          damaged(
            fc
              .constantFrom(...Object.values(streams[upstream]))
              .map((events) => Buffer.from(toSse(upstream, events))),
          ),
        ),
      ),
      format,
      cuts,
      ([upstream, bytes], client, places) => {
        const read = (chunks: readonly Buffer[]) => {
          const reader = createStreamReader({
            upstream,
            client,
            wantsUsage: true,
            model: "m",
            id: "i",
            now: 0,
          });
          const out = chunks.map((chunk) => reader.push(Buffer.from(chunk)).toString("latin1"));
          out.push(reader.end().toString("latin1"));
          return { text: out.join(""), outcome: reader.outcome, usage: reader.usage };
        };
        const whole = read([bytes]);
        const parts = read(chunked(bytes, places));
        if (JSON.stringify(whole) !== JSON.stringify(parts)) throw new Error("the cuts are seen");
      },
    ),

  "server-sent events against a reference": () =>
    fc.property(
      damaged(
        fc
          .array(oddText)
          .map((lines) => Buffer.from(lines.map((line) => `data:${line}\n`).join("\n"))),
      ),
      cuts,
      (bytes, places) => {
        const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
        try {
          text.decode(bytes);
        } catch {
          return;
        }
        const expected: string[] = [];
        const reference = createParser({
          onEvent: ({ event, data }) => expected.push(`${event ?? ""}|${data}`),
        });
        reference.feed(`${bytes.toString("utf8")}\n\n`);
        const parser = new SseParser();
        const events = [
          ...chunked(Buffer.concat([bytes, Buffer.from("\n\n")]), places).flatMap((chunk) =>
            parser.push(chunk),
          ),
          ...parser.end(),
        ];
        const found = events.map(({ name, data }) => `${name ?? ""}|${data}`);
        if (JSON.stringify(found) !== JSON.stringify(expected)) {
          throw new Error(`${JSON.stringify(found)} is not ${JSON.stringify(expected)}`);
        }
      },
    ),

  "paths, keys and addresses": () =>
    fc.property(
      fc.oneof(fc.webUrl(), fc.string(), oddText, fc.ipV6(), fc.ipV4()),
      oddText,
      (text, other) => {
        parseRoute(text);
        parseRoute(`/v1beta/models/${text}:generateContent`);
        readCredential(
          new Map([
            ["authorization", text],
            ["x-api-key", other],
          ]),
          text,
        );
        compileClientAddress(["0.0.0.0/0", "::/0"])(text, `${other}, ${text}`);
        const address = canonicalAddress(text);
        if (address !== undefined && canonicalAddress(address) !== address)
          throw new Error(`${address} is not canonical`);
        retryAfterMs({ retryAfter: text, retryAfterMs: other }, 0);
        parseDuration(text);
      },
    ),

  "Envoy's messages": () =>
    fc.property(fc.uint8Array({ maxLength: 200 }), cuts, (array, places) => {
      const bytes = Buffer.from(array);
      only([WireError], () => decodePhase(bytes));
      only([WireError], () => decodeCheckRequest(bytes));
      only([WireError], () => decodeSecretRequest(bytes));
      only([WireError], () => decodeLogEntries(bytes, { filter: "a", key: "b" }));
      const messages = new GrpcMessages(1_000);
      const whole: string[] = [];
      for (const part of chunked(bytes, places)) {
        if (!messages.push(part, (message) => whole.push(message.toString("hex")))) break;
      }
    }),

  "requests of agents to every service": () =>
    fc.property(
      fc.constantFrom(...instances),
      fc.tuple(oddText, oddText, oddText, jsonBytes),
      fc.nat(),
      ({ requests: known, instance }, [path, query, header, body], place) => {
        const base = known[place % known.length] as ServiceRequest;
        const request: ServiceRequest = {
          ...base,
          path: `${base.path}/${path}`,
          query: `${base.query}&${query}`,
          headers: new Map([...base.headers, ["x-odd", header]]),
          body: place % 2 === 0 ? body : base.body,
        };
        readRequest({
          method: request.method,
          target: `${request.path}?${request.query}`,
          authority: request.host,
          headers: [...request.headers],
          body: request.body,
          serverName: request.host,
        });
        judge(instance, request);
      },
    ),

  "DNS messages": () =>
    fc.property(
      damaged(
        fc
          .tuple(
            fc.array(fc.stringMatching(/^[\x21-\x7e]{1,63}$/), { maxLength: 5 }),
            fc.nat(65_535),
            fc.boolean(),
          )
          .map(([labels, type, edns]) =>
            packet.encode({
              type: "query",
              questions: [{ name: labels.join("."), type: `UNKNOWN_${type}` as packet.RecordType }],
              additionals: edns ? [EDNS] : [],
            }),
          ),
      ),
      (bytes) => {
        const read = readQuery(bytes);
        if (read.kind !== "query") return;
        const { query } = read;
        const theirs = packet.decode(bytes).questions?.[0]?.name ?? "";
        const ours = query.name === "" ? "." : query.name.replaceAll(/\\([.\\])/g, "$1");
        if (/^[\x20-\x7e]*$/.test(theirs) && ours !== theirs)
          throw new Error(`the name ${theirs} is read as ${ours}`);
        const reply = writeReply(query, Rcode.success, ["127.0.0.1", "::1"]);
        const { id, answers } = packet.decode(reply);
        if (reply.length > 512 || id !== query.id || answers?.length !== 2)
          throw new Error("the reply is not read as it was written");
      },
    ),

  "lists of objects to delete": () =>
    fc.property(
      damaged(
        fc
          .array(fc.string())
          .map((keys) =>
            Buffer.from(
              `<Delete>${keys.map((key) => `<Object><Key>${key}</Key></Object>`).join("")}<` +
                "/Delete>",
            ),
          ),
      ),
      (bytes) => void deletedObjects(bytes),
    ),

  "resources in YAML": () =>
    fc.property(
      fc.oneof(
        oddText,
        jsonText,
        near(RESOURCES).map((value) => JSON.stringify(value)),
      ),
      (text) => {
        for (const { message } of parseDocuments(text ?? "", "f.yaml").problems) {
          if (message === "") throw new Error("a problem without words");
        }
      },
    ),
};

const RESOURCES = [
  {
    apiVersion: "svc.io/v1",
    kind: "Agent",
    metadata: { name: "a" },
    spec: { models: ["p/m"], rateLimits: { requestsPerMinute: 1 } },
  },
  {
    apiVersion: "svc.io/v1",
    kind: "ModelProvider",
    metadata: { name: "p" },
    spec: { provider: "mock", fallbacks: [{ provider: "q" }], externalAccess: { enabled: true } },
  },
  { apiVersion: "v1", kind: "Secret", metadata: { name: "s" }, stringData: { token: "x" } },
];

/**
 * The contract of a plugin: it never throws, and returns at least one action for a resolved
 * request.
 */
function judge(instance: ProviderInstance, request: ServiceRequest): void {
  const resolution = instance.resolveAction(request);
  if (resolution.kind === "resolved" && resolution.actions.length === 0) {
    throw new Error("resolved to nothing");
  }
}
