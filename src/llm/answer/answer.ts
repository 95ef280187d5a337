/**
 * Converts an upstream's answer to the caller's: whole bodies, errors and streams. The output never
 * contains the keys that the call was sent with.
 */
import { gunzipSync, inflateSync, brotliDecompressSync } from "node:zlib";
import type { Call } from "../call.ts";
import type { StreamReader, Usage } from "../dialects/dialect.ts";
import {
  createPassReader,
  createStreamReader,
  dialects,
  translateError,
  translateResponse,
  UpstreamFormatError,
} from "../dialects/registry.ts";
import { translateEmbeddingsAnswer } from "../dialects/embeddings/translate.ts";
import { isEmbedding } from "../request/routes.ts";
import { estimateUsage } from "../settlement/estimate.ts";
import { publicError, type PublicError } from "../../access/errors.ts";
import { KeyRedactor } from "./key-redactor.ts";
import { RedactingReader } from "./redacting-reader.ts";

/** Maximum size of a decompressed body; no LLM's answer is larger. */
const MAX_DECOMPRESSED_BYTES = 64 * 1024 * 1024;

/** @throws Error if the encoding is unknown or the data is invalid */
export function decompress(body: Buffer, encoding: string | undefined): Buffer {
  const options = { maxOutputLength: MAX_DECOMPRESSED_BYTES };
  switch (encoding?.trim().toLowerCase()) {
    case undefined:
    case "":
    case "identity":
      return body;
    case "gzip":
    case "x-gzip":
      return gunzipSync(body, options);
    case "deflate":
      return inflateSync(body, options);
    case "br":
      return brotliDecompressSync(body, options);
    default:
      throw new Error(`unknown content-encoding ${encoding}`);
  }
}

export type WholeAnswer =
  | { readonly kind: "answer"; readonly body: Buffer; readonly usage: Usage | undefined }
  /** The answer cannot be shown, but its reported usage still counts. */
  | { readonly kind: "invalid"; readonly error: PublicError; readonly usage: Usage | undefined };

/**
 * Converts a whole 2xx body. Returns the same Buffer if caller and upstream use the same dialect.
 */
export function wholeAnswer(call: Call, body: Buffer, now: number): WholeAnswer {
  const redactor = redactorOf(call);
  const answer = readWhole(call, body, now);
  if (answer.kind === "answer") return { ...answer, body: redactor.answer(answer.body) };
  const { error } = answer;
  return { ...answer, error: { ...error, message: redactor.text(error.message) } };
}

function readWhole(call: Call, body: Buffer, now: number): WholeAnswer {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString("utf8"));
  } catch {
    const error = publicError("upstream_invalid", "The provider's answer is not JSON.");
    return { kind: "invalid", error, usage: undefined };
  }
  const { delivery, request } = call;
  if (request.route.operation === "count_tokens") return { kind: "answer", body, usage: undefined };
  if (delivery.kind === "pass")
    return { kind: "answer", body, usage: dialects[delivery.dialect].readUsage(parsed) };
  try {
    if (isEmbedding(request.route.operation)) return embeddings(call, parsed);
    const translated = translateResponse({
      upstream: delivery.dialect,
      client: request.route.dialect,
      body: parsed,
      model: call.target.model,
      now,
      id: request.id,
      echo: request.echo,
    });
    return { kind: "answer", body: translated.body, usage: translated.usage };
  } catch (error) {
    if (!(error instanceof UpstreamFormatError)) throw error;
    const message = `The provider's answer cannot be translated: ${error.message}`;
    return {
      kind: "invalid",
      error: publicError("upstream_invalid", message),
      usage: dialects[delivery.dialect].readUsage(parsed),
    };
  }
}

/**
 * Gemini does not report the tokens of embeddings, which OpenAI's clients expect: they see the same
 * estimate that is billed.
 */
function embeddings(call: Call, parsed: unknown): WholeAnswer {
  const { delivery, request } = call;
  if (delivery.kind === "pass") throw new Error("embeddings that pass are not translated");
  const usage = dialects[delivery.dialect].readUsage(parsed);
  const body = translateEmbeddingsAnswer({
    upstream: delivery.dialect,
    client: request.route.dialect,
    body: parsed,
    single: request.route.operation === "embed_content",
    model: call.target.model,
    inputTokens: usage?.inputTokens ?? estimateUsage(call, 0).inputTokens,
    echo: request.echo,
  });
  return { kind: "answer", body, usage };
}

/** Converts an upstream's error body to the caller's dialect; its status is kept. */
export function upstreamError(
  call: Call,
  status: number,
  body: Buffer,
): { readonly status: number; readonly body: Buffer } {
  const error = translateError({
    upstream: call.delivery.dialect,
    client: call.request.route.dialect,
    status,
    body,
  });
  return { status: error.status, body: redactorOf(call).body(error.body) };
}

export function streamReader(call: Call, now: number): StreamReader {
  return new RedactingReader(plainReader(call, now), redactorOf(call));
}

/** Returns a redactor for the keys of all providers that the call was sent to. */
function redactorOf(call: Call): KeyRedactor {
  return new KeyRedactor(call.attempts.map(({ target }) => target.provider.apiKey));
}

function plainReader(call: Call, now: number): StreamReader {
  const { delivery, request } = call;
  const { wantsUsage } = request.facts;
  if (delivery.kind === "pass") return createPassReader(delivery.dialect, wantsUsage);
  return createStreamReader({
    upstream: delivery.dialect,
    client: request.route.dialect,
    wantsUsage,
    model: call.target.model,
    id: request.id,
    now,
    echo: request.echo,
  });
}
