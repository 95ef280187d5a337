/**
 * The dialects, and the translations between them: the only file that knows all three. A new
 * dialect is a folder and a line in each table here.
 */
import { anthropic } from "./anthropic/dialect.ts";
import { parseRequest as parseAnthropicRequest } from "./anthropic/parse-request.ts";
import { parseResponse as parseAnthropicResponse } from "./anthropic/parse-response.ts";
import { AnthropicStreamParser } from "./anthropic/parse-stream.ts";
import { AnthropicProbe } from "./anthropic/probe.ts";
import { serialiseRequest as serialiseAnthropicRequest } from "./anthropic/serialise-request.ts";
import { serialiseResponse as serialiseAnthropicResponse } from "./anthropic/serialise-response.ts";
import { AnthropicStreamSerialiser } from "./anthropic/serialise-stream.ts";
import type { Dialect, DialectName, StreamReader, Usage } from "./dialect.ts";
import { gemini } from "./gemini/dialect.ts";
import { parseRequest as parseGeminiRequest } from "./gemini/parse-request.ts";
import { parseResponse as parseGeminiResponse } from "./gemini/parse-response.ts";
import { GeminiStreamParser } from "./gemini/parse-stream.ts";
import { GeminiProbe } from "./gemini/probe.ts";
import { serialiseRequest as serialiseGeminiRequest } from "./gemini/serialise-request.ts";
import { serialiseResponse as serialiseGeminiResponse } from "./gemini/serialise-response.ts";
import { GeminiStreamSerialiser } from "./gemini/serialise-stream.ts";
import type {
  ChatRequest,
  ChatResponse,
  ResponseIdentity,
  StreamParser,
  StreamSerialiser,
} from "./model.ts";
import { openai } from "./openai/dialect.ts";
import { parseRequest as parseOpenaiRequest } from "./openai/parse-request.ts";
import { parseResponse as parseOpenaiResponse } from "./openai/parse-response.ts";
import { OpenaiStreamParser } from "./openai/parse-stream.ts";
import { OpenaiProbe } from "./openai/probe.ts";
import { serialiseRequest as serialiseOpenaiRequest } from "./openai/serialise-request.ts";
import { serialiseResponse as serialiseOpenaiResponse } from "./openai/serialise-response.ts";
import { OpenaiStreamSerialiser } from "./openai/serialise-stream.ts";
import { PassStreamReader } from "./pass-stream.ts";
import type { StreamProbe } from "./pass-stream.ts";
import type { Serialised, TranslationTarget } from "./target.ts";
import { translateErrorBody } from "./translate-error.ts";
import { TranslateStreamReader } from "./translate-stream.ts";
import { CallIndex } from "./turns.ts";

export { UpstreamFormatError } from "./model.ts";
export { type OutputCap, passRequest } from "./pass-request.ts";

export const dialects: Readonly<Record<DialectName, Dialect>> = { openai, anthropic, gemini };

/**
 * Conversions between a dialect and the model; `id` and similar values are the parameters of the
 * functions below.
 */
interface Translator {
  parseRequest(body: unknown): ChatRequest;
  serialiseRequest(request: ChatRequest, target: TranslationTarget): Serialised;
  parseResponse(body: unknown, id: string): ChatResponse;
  serialiseResponse(response: ChatResponse, identity: ResponseIdentity): object;
  streamParser(id: string): StreamParser;
  streamSerialiser(identity: ResponseIdentity, wantsUsage: boolean): StreamSerialiser;
  probe(wantsUsage: boolean): StreamProbe;
}

const translators: Readonly<Record<DialectName, Translator>> = {
  openai: {
    parseRequest: parseOpenaiRequest,
    serialiseRequest: serialiseOpenaiRequest,
    parseResponse: parseOpenaiResponse,
    serialiseResponse: serialiseOpenaiResponse,
    streamParser: (id) => new OpenaiStreamParser(id),
    streamSerialiser: (identity, wantsUsage) => new OpenaiStreamSerialiser(identity, wantsUsage),
    probe: (wantsUsage) => new OpenaiProbe(wantsUsage),
  },
  anthropic: {
    parseRequest: parseAnthropicRequest,
    serialiseRequest: serialiseAnthropicRequest,
    parseResponse: parseAnthropicResponse,
    serialiseResponse: serialiseAnthropicResponse,
    streamParser: () => new AnthropicStreamParser(),
    streamSerialiser: (identity) => new AnthropicStreamSerialiser(identity),
    probe: () => new AnthropicProbe(),
  },
  gemini: {
    parseRequest: parseGeminiRequest,
    serialiseRequest: serialiseGeminiRequest,
    parseResponse: parseGeminiResponse,
    serialiseResponse: serialiseGeminiResponse,
    streamParser: (id) => new GeminiStreamParser(id),
    streamSerialiser: (identity) => new GeminiStreamSerialiser(identity),
    probe: () => new GeminiProbe(),
  },
};

export interface RequestTranslation {
  readonly from: DialectName;
  readonly to: DialectName;
  /** The client's body, parsed. */
  readonly body: unknown;
  /** The model to request. */
  readonly model: string;
  readonly stream: boolean;
  /** Maximum output tokens to request, if the body contains none. */
  readonly outputCap?: number | undefined;
}

/**
 * `notes` lists documented omissions and changes, for the log.
 * @throws BadRequestError for a request that the target cannot express.
 */
export function translateRequest({
  from,
  to,
  body,
  model,
  stream,
  outputCap,
}: RequestTranslation): { body: Buffer; notes: string[] } {
  const parsed = translators[from].parseRequest(body);
  const request = { ...parsed, maxOutputTokens: parsed.maxOutputTokens ?? outputCap };
  new CallIndex(request.turns).checkResults(request.turns);
  const { body: translated, notes } = translators[to].serialiseRequest(request, { model, stream });
  return { body: Buffer.from(JSON.stringify(translated), "utf8"), notes };
}

export interface ResponseTranslation extends ResponseIdentity {
  readonly upstream: DialectName;
  readonly client: DialectName;
  /** The upstream's body, parsed. */
  readonly body: unknown;
}

/**
 * @throws UpstreamFormatError if the body does not conform to the upstream's dialect, or cannot be
 * shown.
 */
export function translateResponse({ upstream, client, body, ...identity }: ResponseTranslation): {
  body: Buffer;
  usage: Usage | undefined;
} {
  const response = translators[upstream].parseResponse(body, identity.id);
  const translated = translators[client].serialiseResponse(response, identity);
  return { body: Buffer.from(JSON.stringify(translated), "utf8"), usage: response.usage };
}

export interface StreamTranslation extends ResponseIdentity {
  readonly upstream: DialectName;
  readonly client: DialectName;
  /** Whether the client requested usage on the stream. */
  readonly wantsUsage: boolean;
}

export function createStreamReader({
  upstream,
  client,
  wantsUsage,
  ...identity
}: StreamTranslation): StreamReader {
  if (upstream === client)
    return new PassStreamReader(dialects[client], translators[client].probe(wantsUsage));
  const serialiser = translators[client].streamSerialiser(identity, wantsUsage);
  return new TranslateStreamReader(
    dialects[client],
    translators[upstream].streamParser(identity.id),
    serialiser,
  );
}

export interface ErrorRequest {
  readonly upstream: DialectName;
  readonly client: DialectName;
  readonly status: number;
  readonly body: Buffer;
}

/** An upstream's error in the client's shape; the status is kept. */
export function translateError({ upstream, client, status, body }: ErrorRequest): {
  status: number;
  body: Buffer;
} {
  return translateErrorBody({ upstream, client: dialects[client], status, body });
}
