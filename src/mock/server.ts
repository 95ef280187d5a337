/**
 * The upstream of ModelProviders of kind `mock`: deterministic, local, in every vendor's form, with
 * streaming, tool calls, embeddings and usage. It is for first calls and for experiments, and costs
 * nothing.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";
import type { ClientDialect } from "../llm/dialects/contract.ts";
import { BadRequestError } from "../llm/dialects/dialect.ts";
import { isObject, type JsonObject } from "../llm/dialects/fields.ts";
import { dialects } from "../llm/dialects/registry.ts";
import {
  translateEmbeddings,
  translateEmbeddingsAnswer,
} from "../llm/dialects/embeddings/translate.ts";
import { isEmbedding, type LlmRoute, parseRoute } from "../llm/request/routes.ts";
import { publicError } from "../access/errors.ts";
import { mockAnswer } from "./answer.ts";
import { embeddings } from "./embeddings.ts";
import type { Script } from "./script.ts";
import { streamedAnswer, wholeAnswer } from "./serve.ts";

const MAX_BODY_BYTES = 64 * 1024 * 1024;

export interface MockServer {
  readonly host: string;
  readonly port: number;
  close(): Promise<void>;
}

export interface MockOptions {
  /** 0 for any free port. */
  readonly port?: number | undefined;
  /** Undefined to echo only. */
  readonly script?: Script | undefined;
}

export async function startMock({ port = 0, script }: MockOptions = {}): Promise<MockServer> {
  const listener = getRequestListener(createApp(script).fetch, { overrideGlobalObjects: false });
  const server = http.createServer((request, response) => void listener(request, response));
  // Envoy keeps connections open; this server must not close them first.
  server.keepAliveTimeout = 120_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
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

function createApp(script: Script | undefined): Hono<{ Bindings: HttpBindings }> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.post("*", async ({ env, req }) => {
    // Not `req.path`: a model's name may be percent-encoded.
    const route = parseRoute(env.incoming.url ?? req.path);
    if (route === undefined || route.audience === "external") return notFound();
    const dialect = dialects[route.dialect];
    try {
      return answerTo(route, dialect, await read(env.incoming), script);
    } catch (error) {
      if (!(error instanceof BadRequestError)) throw error;
      const { message, param } = error;
      return refused(dialect, publicError("invalid_request", `the mock: ${message}`, param));
    }
  });
  app.notFound(notFound);
  app.onError((_error, { env }) => {
    env.outgoing.destroy();
    return RESPONSE_ALREADY_SENT;
  });
  return app;
}

/** @throws BadRequestError */
function answerTo(
  route: LlmRoute,
  dialect: ClientDialect,
  text: string,
  script: Script | undefined,
): Response {
  const body = parseBody(text);
  if (isEmbedding(route.operation)) return Response.json(embeddingsFor(route, body));
  const answer = mockAnswer(dialect.parseRequest(body), script);
  if (route.operation === "count_tokens") {
    const { promptTokens } = answer;
    return Response.json(
      route.dialect === "gemini" ? { totalTokens: promptTokens } : { input_tokens: promptTokens },
    );
  }
  const fields = { get: (name: string) => body[name] };
  const facts = dialect.readFacts(fields);
  const model = route.model ?? facts.model ?? "mock";
  const asked = { text, model, echo: dialect.readEcho?.(fields) };
  return (route.stream ?? facts.stream)
    ? streamedAnswer(dialect, asked, answer, facts.wantsUsage)
    : wholeAnswer(dialect, asked, answer);
}

/** @throws BadRequestError */
function embeddingsFor({ dialect, operation, model = "mock" }: LlmRoute, body: JsonObject): object {
  if (dialect === "openai") return embeddings(needs(body, "input"));
  const single = operation === "embed_content";
  const asked = { from: dialect, to: "openai", body, single, model, mode: "lenient" } as const;
  const request = parseBody(translateEmbeddings(asked).body.toString());
  const answer = translateEmbeddingsAnswer({
    upstream: "openai",
    client: dialect,
    body: embeddings(request),
    single,
    model,
    inputTokens: 0,
    echo: undefined,
  });
  return JSON.parse(answer.toString()) as object;
}

function parseBody(text: string): JsonObject {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new BadRequestError("the body is not valid JSON");
  }
  if (!isObject(body)) throw new BadRequestError("the body must be a JSON object");
  return body;
}

function needs(body: JsonObject, field: string): JsonObject {
  if (body[field] === undefined) throw new BadRequestError(`${field} is missing`, field);
  return body;
}

function notFound(): Response {
  return refused(dialects.openai, publicError("not_found", "the mock has no such path"));
}

function refused(dialect: ClientDialect, error: ReturnType<typeof publicError>): Response {
  return new Response(dialect.renderError(error), {
    status: error.status,
    headers: { "content-type": "application/json" },
  });
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
