/**
 * The upstream of ModelProviders of kind `mock`: deterministic, local, in OpenAI's shape, with
 * streaming, tool calls, embeddings and usage. It is for first calls and for experiments, and costs
 * nothing.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";
import { countWords, type MockAnswer, mockAnswer } from "./chat.ts";

const MAX_BODY_BYTES = 64 * 1024 * 1024;
const CREATED = 1_700_000_000;

export interface MockServer {
  readonly host: string;
  readonly port: number;
  close(): Promise<void>;
}

export async function startMock(): Promise<MockServer> {
  const server = http.createServer((request, response) => {
    void serve(request, response).catch(() => response.destroy());
  });
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

async function serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
  const body = await read(request);
  const path = (request.url ?? "").split("?")[0];
  if (request.method !== "POST" || (path !== "/v1/chat/completions" && path !== "/v1/embeddings")) {
    return json(response, 404, {
      error: {
        message: "the mock has no such path",
        type: "invalid_request_error",
        code: null,
        param: null,
      },
    });
  }
  const parsed = parseRequest(body, path === "/v1/embeddings" ? "input" : "messages");
  if (parsed === undefined) {
    const message = "the mock wants a JSON object with messages (a list of objects), or with input";
    return json(response, 400, {
      error: { message, type: "invalid_request_error", code: null, param: null },
    });
  }
  if (path === "/v1/embeddings") return json(response, 200, embeddings(parsed));
  const answer = mockAnswer(parsed);
  if (parsed["stream"] === true) return stream(response, parsed, answer);
  return json(response, 200, completion(parsed, answer));
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

function json(response: http.ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
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

function stream(
  response: http.ServerResponse,
  request: Record<string, unknown>,
  answer: MockAnswer,
): void {
  const options = request["stream_options"] as { include_usage?: boolean } | null | undefined;
  const withUsage = options?.include_usage === true;
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
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  const delta = (content: object, finish: string | null = null): void =>
    send([{ index: 0, delta: content, logprobs: null, finish_reason: finish }]);
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
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
  response.end("data: [DONE]\n\n");
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
