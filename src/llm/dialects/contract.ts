/**
 * Dialect is what the gateway knows of one vendor's wire format. Each dialect is a folder that
 * exports one; nothing outside of the folder depends on which vendor it is. Dialects are converted
 * through the internal model of `model.ts`. Nothing here does I/O.
 *
 * A ClientDialect is the part for clients. OpenAI's Responses API has only this part: its requests
 * pass to servers of this API unchanged, and are translated for all others.
 */
import type { PublicError } from "../../access/errors.ts";
import type { ProviderKind } from "../../policy/snapshot.ts";
import type { BodyFields, CallFacts, DialectName, Usage, WireFormat } from "./dialect.ts";
import type { JsonObject } from "./fields.ts";
import type {
  ChatRequest,
  ChatResponse,
  RequestEcho,
  ResponseIdentity,
  StreamParser,
  StreamSerialiser,
  UpstreamError,
} from "./model.ts";
import type { StreamProbe } from "./stream-probe.ts";
import type { TranslationTarget } from "./target.ts";
import type { ContentText, StreamedText } from "./texts.ts";

export interface ClientDialect extends RequestFormat, AnswerFormat, ClientConversions, TextReaders {
  readonly name: WireFormat;
}

export interface Dialect extends ClientDialect, UpstreamConversions {
  readonly name: DialectName;
}

/** How requests are read, and forwarded to an upstream of the same dialect. */
export interface RequestFormat {
  /** Whether the body names the model; if not, the path does. */
  readonly modelIsInBody: boolean;
  /** Whether an upstream reports the usage of a stream only if `stream_options` asks for it. */
  readonly usageIsAskedFor: boolean;
  /**
   * Query parameter by which a request asks for a stream as server-sent events; undefined if it
   * needs none.
   */
  readonly streamParameter?: { readonly name: string; readonly value: string };
  readonly foreignReasoning: ForeignReasoning;
  /** @throws BadRequestError if a required field has a value of the wrong type */
  readFacts(body: BodyFields): CallFacts;
  /** Returns the name of the field that limits the output at an upstream of a kind. */
  outputLimitField(kind: ProviderKind): OutputLimitField;
  /**
   * Returns whether the client runs a tool itself. Other tools are run by the vendor, at a cost
   * that is not reported.
   */
  isClientTool(tool: JsonObject): boolean;
  /** Returns headers of requests to an upstream of this dialect, besides the usual ones. */
  upstreamHeaders?(native: VendorHeaders | undefined): (readonly [name: string, value: string])[];
}

/** `generationConfig` stands for its member `maxOutputTokens`. */
export type OutputLimitField =
  | "max_tokens"
  | "max_completion_tokens"
  | "max_output_tokens"
  | "generationConfig";

/** Another vendor's reasoning in a conversation: vendors refuse signatures of others. */
export interface ForeignReasoning {
  /** A body without these bytes contains none: one search suffices for almost every request. */
  readonly mark: Buffer;
  /** Member of the body that lists the messages. */
  readonly list: string;
  /** Returns the message without foreign reasoning; undefined if nothing else is left of it. */
  strip(message: JsonObject): JsonObject | undefined;
}

/** The caller's headers for an upstream of the same dialect. */
export interface VendorHeaders {
  readonly anthropicVersion: string | undefined;
  readonly anthropicBeta: string | undefined;
}

/** How answers and errors are read and written. */
export interface AnswerFormat {
  /**
   * Where a stream reports the call's totals: in a last comment, or in a member of its last event
   * if the dialect's clients fail on comments.
   */
  readonly streamTotals: "comment" | "member";
  /** Returns the usage of a whole response body; undefined if it contains none. */
  readUsage(body: unknown): Usage | undefined;
  /** Returns the error of an upstream; undefined if the body is not an error of this dialect. */
  parseError(status: number, body: unknown): UpstreamError | undefined;
  /** Returns whether an error that was parsed may be forwarded as it is. */
  isNativeError(body: unknown): boolean;
  /** Writes an error body in this dialect. */
  renderError(error: PublicError): string;
  /** Writes an error event that ends a stream in this dialect. */
  renderStreamError(error: PublicError): string;
  /** Describes a model, in the form of the API's `GET` of one. */
  renderModel(ref: string): object;
  /** Lists models, in the form of the API's `GET` of all. */
  renderModels(refs: readonly string[]): object;
}

/** How the guard reads requests and answers. Lenient: what cannot be read is no text. */
export interface TextReaders {
  readTexts(body: Readonly<JsonObject>): readonly ContentText[];
  /** Reads a whole answer. */
  readAnswerTexts(body: unknown): readonly ContentText[];
  /** @param event the data of one event of a stream, parsed */
  readStreamedTexts(event: unknown): readonly StreamedText[];
}

/** Conversions of a client's requests to the model, and of the model to its answers. */
export interface ClientConversions {
  /** @throws BadRequestError */
  parseRequest(body: unknown): ChatRequest;
  /** Returns what answers repeat of their request; undefined if they repeat nothing. */
  readEcho?(body: BodyFields): RequestEcho;
  /** @throws UpstreamFormatError if the dialect cannot express the response */
  serialiseResponse(response: ChatResponse, identity: ResponseIdentity): object;
  streamSerialiser(identity: ResponseIdentity, wantsUsage: boolean): StreamSerialiser;
  probe(wantsUsage: boolean): StreamProbe;
}

/** Conversions of the model to an upstream's requests, and of its answers to the model. */
export interface UpstreamConversions {
  /** @throws BadRequestError if the dialect cannot express the request */
  serialiseRequest(request: ChatRequest, target: TranslationTarget): object;
  /** @throws UpstreamFormatError */
  parseResponse(body: unknown, id: string): ChatResponse;
  streamParser(id: string): StreamParser;
}
