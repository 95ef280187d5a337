/** Embeddings between the dialects that have them, and the same dialect's with another model. */
import type { TranslationMode } from "../../../policy/snapshot.ts";
import { ChangeLog, type Changes } from "../changes.ts";
import type { BodyFields, DialectName, WireFormat } from "../dialect.ts";
import type { JsonObject } from "../fields.ts";
import { settleLeftovers } from "../leftovers.ts";
import { type RequestEcho, UpstreamFormatError } from "../model.ts";
import type { EmbeddingDialect, EmbeddingShape } from "./contract.ts";
import { geminiEmbeddings, withModel } from "./gemini.ts";
import { openaiEmbeddings } from "./openai.ts";

const DIALECTS: Readonly<Partial<Record<WireFormat, EmbeddingDialect>>> = {
  openai: openaiEmbeddings,
  gemini: geminiEmbeddings,
};

/** Returns whether a dialect has embeddings. */
export function hasEmbeddings(dialect: WireFormat): boolean {
  return DIALECTS[dialect] !== undefined;
}

export interface EmbeddingTranslation {
  readonly from: WireFormat;
  readonly to: DialectName;
  /** The client's body, parsed. */
  readonly body: unknown;
  /** The request is Gemini's for a single content. */
  readonly single: boolean;
  /** The model to request. */
  readonly model: string;
  readonly mode: TranslationMode;
}

/** @throws BadRequestError for a request that the target cannot express */
export function translateEmbeddings(translation: EmbeddingTranslation): {
  body: Buffer;
  changes: Changes;
} {
  const { from, to, body, single, model, mode } = translation;
  const request = dialectOf(from).parseRequest(body, single);
  const changes = new ChangeLog(mode);
  settleLeftovers(request.leftovers, {}, to === "openai" ? "OpenAI" : "Gemini", changes);
  const translated = dialectOf(to).serialiseRequest(request, model);
  return { body: Buffer.from(JSON.stringify(translated), "utf8"), changes };
}

/** Returns a body for Gemini's own API: see {@link withModel}. @throws BadRequestError */
export function passToGemini(body: JsonObject, model: string, single: boolean): Buffer {
  return Buffer.from(JSON.stringify(withModel(body, model, single)), "utf8");
}

/** Returns what the answer depends on. */
export function embeddingsEcho(body: BodyFields): RequestEcho {
  const packed = body.get("encoding_format") === "base64";
  return { settings: { packed }, tools: new Map() };
}

export interface EmbeddingAnswer extends Omit<EmbeddingShape, "packed"> {
  readonly upstream: DialectName;
  readonly client: WireFormat;
  /** The upstream's body, parsed. */
  readonly body: unknown;
  readonly echo: RequestEcho | undefined;
}

/** @throws UpstreamFormatError if the body does not conform to the upstream's dialect */
export function translateEmbeddingsAnswer(answer: EmbeddingAnswer): Buffer {
  const { upstream, client, body, echo, ...shape } = answer;
  const response = dialectOf(upstream).parseResponse(body);
  if (shape.single && response.vectors.length !== 1)
    throw new UpstreamFormatError("the upstream's answer has not one embedding");
  const packed = echo?.settings["packed"] === true;
  const translated = dialectOf(client).serialiseResponse(response, { ...shape, packed });
  return Buffer.from(JSON.stringify(translated), "utf8");
}

function dialectOf(name: WireFormat): EmbeddingDialect {
  const dialect = DIALECTS[name];
  if (dialect === undefined) throw new Error(`${name} has no embeddings`);
  return dialect;
}
