/**
 * The upstream of ModelProviders of kind `mock`: deterministic, local, in OpenAI's shape, with
 * streaming, tool calls, embeddings, the Responses API and usage. It is for first calls and for
 * experiments, and costs nothing.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type Context, Hono } from "hono";
import { countWords, type MockAnswer, mockAnswer } from "./chat.ts";
import { mockResponse, mockResponseEvents } from "./responses.ts";

const MAX_BODY_BYTES = 64 * 1024 * 1024;
const CREATED = 1_700_000_000;

export interface MockServer {
  readonly host: string;
  readonly port: number;
  close(): Promise<void>;
}

export async function startMock(): Promise<MockServer> {
  const listener = getRequestListener(createApp().fetch, { overrideGlobalObjects: false });
  const server = http.createServer((request, response) => void listener(request, response));
  // Envoy keeps connections open; this server must not close them first.
  server.keepAliveTimeout = 120_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    host: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

type MockContext = Context<{ Bindings: HttpBindings }>;

function createApp(): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.post("/v1/chat/completions", async (context) => {
    const request = await readRequest(context, "messages");
    if (request === undefined) return malformed();
    const answer = mockAnswer(request);
    return request["stream"] === true
      ? stream(request, answer)
      : Response.json(completion(request, answer));
  });
  app.post("/v1/embeddings", async (context) => {
    const request = await readRequest(context, "input");
    return request === undefined ? malformed() : Response.json(embeddings(request));
  });
  app.post("/v1/responses", async (context) => {
    const request = await readRequest(context, "input");
    if (request === undefined) return malformed();
    return request["stream"] === true
      ? eventStream(mockResponseEvents(request))
      : Response.json(mockResponse(request));
  });
  app.notFound(() => failure(404, "the mock has no such path"));
  app.onError((_error, { env }) => {
    env.outgoing.destroy();
    return RESPONSE_ALREADY_SENT;
  });
  return app;
}

function malformed(): Response {
  const wants = "a JSON object with messages (a list of objects), or with input";
  return failure(400, `the mock wants ${wants}`);
}

function failure(status: number, message: string): Response {
  const error = { message, type: "invalid_request_error", code: null, param: null };
  return Response.json({ error }, { status });
}

async function readRequest(
  { env }: MockContext,
  needed: "messages" | "input",
): Promise<Record<string, unknown> | undefined> {
  return parseRequest(await read(env.incoming), needed);
}

/** @returns undefined if the body is not a valid request */
function parseRequest(
  text: string,
  needed: "messages" | "input",
): Record<string, unknown> | undefined {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof body !== "object" || body === null) return undefined;
  const value = (body as Record<string, unknown>)[needed];
  if (needed === "input")
    return value === undefined ? undefined : (body as Record<string, unknown>);
  const isMessage = (entry: unknown): boolean => typeof entry === "object" && entry !== null;
  return Array.isArray(value) && value.every(isMessage)
    ? (body as Record<string, unknown>)
    : undefined;
}

async function read(request: http.IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > MAX_BODY_BYTES) throw new Error("body too large");
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function usageOf(answer: MockAnswer): object {
  return {
    prompt_tokens: answer.promptTokens,
    completion_tokens: answer.completionTokens,
    total_tokens: answer.promptTokens + answer.completionTokens,
    prompt_tokens_details: { cached_tokens: 0 },
  };
}

const toolCall = (call: MockAnswer["toolCalls"][number]): object => ({
  id: call.id,
  type: "function",
  function: { name: call.name, arguments: call.arguments },
});

function completion(request: Record<string, unknown>, answer: MockAnswer): object {
  const calls = answer.toolCalls.length > 0;
  return {
    id: "chatcmpl-mock",
    object: "chat.completion",
    created: CREATED,
    model: request["model"],
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: calls ? null : answer.text,
          refusal: null,
          ...(calls ? { tool_calls: answer.toolCalls.map(toolCall) } : {}),
        },
        logprobs: null,
        finish_reason: calls ? "tool_calls" : "stop",
      },
    ],
    usage: usageOf(answer),
  };
}

function stream(request: Record<string, unknown>, answer: MockAnswer): Response {
  const options = request["stream_options"] as { include_usage?: boolean } | null | undefined;
  const withUsage = options?.include_usage === true;
  const events: string[] = [];
  const send = (choices: object[], more: object = {}): void => {
    const chunk = {
      id: "chatcmpl-mock",
      object: "chat.completion.chunk",
      created: CREATED,
      model: request["model"],
      choices,
      ...(withUsage ? { usage: null } : {}),
      ...more,
    };
    events.push(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  const delta = (content: object, finish: string | null = null): void =>
    send([{ index: 0, delta: content, logprobs: null, finish_reason: finish }]);
  delta({ role: "assistant", content: answer.toolCalls.length > 0 ? null : "" });
  for (const piece of answer.text.match(/\S+\s*/g) ?? []) delta({ content: piece });
  answer.toolCalls.forEach((call, index) => {
    const half = Math.ceil(call.arguments.length / 2);
    delta({
      tool_calls: [
        { index, id: call.id, type: "function", function: { name: call.name, arguments: "" } },
      ],
    });
    delta({ tool_calls: [{ index, function: { arguments: call.arguments.slice(0, half) } }] });
    delta({ tool_calls: [{ index, function: { arguments: call.arguments.slice(half) } }] });
  });
  delta({}, answer.toolCalls.length > 0 ? "tool_calls" : "stop");
  if (withUsage) send([], { usage: usageOf(answer) });
  events.push("data: [DONE]\n\n");
  return eventStream(events);
}

function eventStream(events: readonly string[]): Response {
  return new Response(ReadableStream.from(events.map((event) => Buffer.from(event))), {
    headers: { "content-type": "text/event-stream", "cache-control": "no-cache" },
  });
}

/** Eight numbers computed from the input's characters: equal inputs have equal vectors. */
function embeddings(request: Record<string, unknown>): object {
  const input = request["input"];
  const texts = Array.isArray(input) ? input.map(String) : [typeof input === "string" ? input : ""];
  // The official SDK requests this by default.
  const packed = request["encoding_format"] === "base64";
  const data = texts.map((text, index) => {
    const vector = Array.from({ length: 8 }, () => 0);
    for (let i = 0; i < text.length; i++)
      vector[i % 8] = ((vector[i % 8] as number) * 31 + text.charCodeAt(i)) % 1000;
    const embedding = vector.map((value) => value / 1000);
    return { object: "embedding", index, embedding: packed ? base64Floats(embedding) : embedding };
  });
  const tokens = Math.max(
    1,
    texts.reduce((sum, text) => sum + countWords(text), 0),
  );
  return {
    object: "list",
    data,
    model: request["model"],
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  };
}

/** Little-endian 32-bit floats, as OpenAI packs them. */
function base64Floats(values: readonly number[]): string {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, i) => bytes.writeFloatLE(value, i * 4));
  return bytes.toString("base64");
}
