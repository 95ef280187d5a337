/**
 * The dialects, and the translations between them. A new dialect is a folder and a line here, and
 * its paths in `llm/request/routes.ts`.
 */
import { anthropic } from "./anthropic/dialect.ts";
import type { TranslationMode } from "../../policy/snapshot.ts";
import { ChangeLog, type Changes } from "./changes.ts";
import type { ClientDialect, Dialect } from "./contract.ts";
import type { DialectName, StreamReader, Usage, WireFormat } from "./dialect.ts";
import { gemini } from "./gemini/dialect.ts";
import type { ResponseIdentity } from "./model.ts";
import { openai } from "./openai/dialect.ts";
import { PassStreamReader } from "./pass-stream.ts";
import { responses } from "./responses/dialect.ts";
import { translateErrorBody } from "./translate-error.ts";
import { TranslateStreamReader } from "./translate-stream.ts";
import { CallIndex } from "./turns.ts";

export { UpstreamFormatError } from "./model.ts";

const upstreams: Readonly<Record<DialectName, Dialect>> = { openai, anthropic, gemini };

export const dialects: Readonly<Record<WireFormat, ClientDialect>> = { ...upstreams, responses };

/** The dialects in the order in which an error of unknown form is read: the strictest first. */
const GUESSES: readonly Dialect[] = [anthropic, gemini, openai];

export interface RequestTranslation {
  readonly from: WireFormat;
  readonly to: DialectName;
  /** The client's body, parsed. */
  readonly body: unknown;
  /** The model to request. */
  readonly model: string;
  readonly stream: boolean;
  readonly mode: TranslationMode;
  /** Maximum output tokens to request, if the body contains none. */
  readonly outputCap?: number | undefined;
}

/** @throws BadRequestError for a request that the target cannot express */
export function translateRequest({
  from,
  to,
  body,
  model,
  stream,
  mode,
  outputCap,
}: RequestTranslation): { body: Buffer; changes: Changes } {
  const parsed = dialects[from].parseRequest(body);
  const request = { ...parsed, maxOutputTokens: parsed.maxOutputTokens ?? outputCap };
  new CallIndex(request.turns).checkResults(request.turns);
  const changes = new ChangeLog(mode);
  const translated = upstreams[to].serialiseRequest(request, { model, stream, changes });
  return { body: Buffer.from(JSON.stringify(translated), "utf8"), changes };
}

export interface ResponseTranslation extends ResponseIdentity {
  readonly upstream: DialectName;
  readonly client: WireFormat;
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
  const response = upstreams[upstream].parseResponse(body, identity.id);
  const translated = dialects[client].serialiseResponse(response, identity);
  return { body: Buffer.from(JSON.stringify(translated), "utf8"), usage: response.usage };
}

/** Reads a stream of the client's own dialect, which passes. */
export function createPassReader(client: WireFormat, wantsUsage: boolean): StreamReader {
  return new PassStreamReader(dialects[client], dialects[client].probe(wantsUsage));
}

export interface StreamTranslation extends ResponseIdentity {
  readonly upstream: DialectName;
  readonly client: WireFormat;
  /** Whether the client requested usage on the stream. */
  readonly wantsUsage: boolean;
}

export function createStreamReader({
  upstream,
  client,
  wantsUsage,
  ...identity
}: StreamTranslation): StreamReader {
  if (upstream === client) return createPassReader(client, wantsUsage);
  const serialiser = dialects[client].streamSerialiser(identity, wantsUsage);
  return new TranslateStreamReader(
    dialects[client],
    upstreams[upstream].streamParser(identity.id),
    serialiser,
  );
}

export interface ErrorRequest {
  readonly upstream: WireFormat;
  readonly client: WireFormat;
  readonly status: number;
  readonly body: Buffer;
}

/** An upstream's error in the client's shape; the status is kept. */
export function translateError({ upstream, client, status, body }: ErrorRequest): {
  status: number;
  body: Buffer;
} {
  return translateErrorBody({
    upstream: dialects[upstream],
    client: dialects[client],
    others: GUESSES,
    status,
    body,
  });
}
