/**
 * The model between dialects: one representation of a request, a response and a stream. Every
 * dialect parses into it and serialises from it, and knows nothing of the other dialects.
 */
import type { PublicError } from "../../access/errors.ts";
import type { DialectName, Usage } from "./dialect.ts";

/** Content before and including the marked block may be served from the vendor's prompt cache. */
export interface CacheMark {
  readonly ttl: "5m" | "1h" | undefined;
}

/** An opaque proof of reasoning. Only the vendor that created it accepts it. */
export interface Signature {
  readonly vendor: DialectName;
  readonly value: string;
}

export type Media =
  | { readonly kind: "base64"; readonly mimeType: string; readonly data: string }
  | { readonly kind: "url"; readonly url: string; readonly mimeType: string | undefined };

export interface TextBlock {
  readonly kind: "text";
  readonly text: string;
  readonly cache?: CacheMark | undefined;
  /** Gemini signs text parts as well as calls. */
  readonly signature?: Signature | undefined;
}

export interface ImageBlock {
  readonly kind: "image";
  readonly media: Media;
  readonly detail?: "low" | "high" | undefined;
  readonly cache?: CacheMark | undefined;
}

export interface DocumentBlock {
  readonly kind: "document";
  readonly media: Media;
  readonly title?: string | undefined;
  /** Place in the client's request, for errors. */
  readonly param: string;
  readonly cache?: CacheMark | undefined;
}

export interface AudioBlock {
  readonly kind: "audio";
  readonly mimeType: string;
  readonly data: string;
  /** Place in the client's request, for errors. */
  readonly param: string;
}

export interface ThinkingBlock {
  readonly kind: "thinking";
  /** Vendor of the model that reasoned; undefined if the client's dialect does not contain it. */
  readonly vendor: DialectName | undefined;
  readonly text: string;
  readonly signature: Signature | undefined;
}

/** Reasoning that only its vendor can read. */
export interface RedactedBlock {
  readonly kind: "redacted";
  readonly signature: Signature;
}

export interface ToolCallBlock {
  readonly kind: "tool_call";
  readonly id: string;
  readonly name: string;
  /** JSON text of an object; never empty. */
  readonly arguments: string;
  readonly signature?: Signature | undefined;
  readonly cache?: CacheMark | undefined;
}

export type ResultContent = TextBlock | ImageBlock | DocumentBlock;

export interface ToolResultBlock {
  readonly kind: "tool_result";
  readonly callId: string;
  readonly content: readonly ResultContent[];
  readonly isError: boolean;
  readonly cache?: CacheMark | undefined;
  /** Place in the client's request, for errors. */
  readonly param: string;
}

/** The model's own text of a refusal. */
export interface RefusalBlock {
  readonly kind: "refusal";
  readonly text: string;
}

export type Block =
  | TextBlock
  | ImageBlock
  | DocumentBlock
  | AudioBlock
  | ThinkingBlock
  | RedactedBlock
  | ToolCallBlock
  | ToolResultBlock
  | RefusalBlock;

export interface Turn {
  readonly role: "system" | "user" | "assistant";
  readonly content: readonly Block[];
  /** Place in the client's request, e.g. `messages[2]`. */
  readonly param: string;
}

export interface Tool {
  readonly name: string;
  readonly description: string | undefined;
  /** JSON Schema of the arguments; undefined for none. */
  readonly schema: Readonly<Record<string, unknown>> | undefined;
  readonly strict: boolean;
  readonly cache?: CacheMark | undefined;
}

export type ToolChoice =
  | { readonly kind: "none" }
  /** `only` restricts the selectable tools. */
  | { readonly kind: "auto"; readonly only: readonly string[] | undefined }
  | { readonly kind: "required"; readonly only: readonly string[] | undefined };

export type ResponseFormat =
  | { readonly kind: "json_object" }
  | {
      readonly kind: "json_schema";
      readonly name: string;
      readonly description: string | undefined;
      readonly schema: Readonly<Record<string, unknown>>;
      readonly strict: boolean | undefined;
    };

export type Effort = "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

export type Reasoning =
  | { readonly kind: "off" }
  /** The model decides the amount. */
  | { readonly kind: "auto" }
  | { readonly kind: "effort"; readonly effort: Effort }
  | { readonly kind: "budget"; readonly tokens: number };

/** A request field without an equivalent in the model. */
export interface Leftover {
  readonly param: string;
  /** It changes the meaning of the conversation (content, tools, form of the answer). */
  readonly essential: boolean;
  /** Reason why it may be dropped whatever the target is; undefined if the target decides. */
  readonly reason?: string | undefined;
}

export interface ChatRequest {
  /**
   * In the client's order; a system prompt outside of the messages comes first, as a system turn.
   */
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  readonly toolChoice: ToolChoice | undefined;
  readonly parallelToolCalls: boolean | undefined;
  readonly maxOutputTokens: number | undefined;
  readonly temperature: number | undefined;
  readonly topP: number | undefined;
  readonly topK: number | undefined;
  readonly presencePenalty: number | undefined;
  readonly frequencyPenalty: number | undefined;
  readonly seed: number | undefined;
  readonly choices: number | undefined;
  readonly stop: readonly string[];
  readonly responseFormat: ResponseFormat | undefined;
  readonly reasoning: Reasoning | undefined;
  /** Whether the client requested to see (true) or to hide (false) the reasoning. */
  readonly showReasoning: boolean | undefined;
  /** The end user behind the call, for the vendor's abuse detection. */
  readonly user: string | undefined;
  /** A mark on the whole request: everything up to its last block is cached. */
  readonly cache: CacheMark | undefined;
  readonly leftovers: readonly Leftover[];
  /**
   * Names of this model's fields in the client's dialect, for errors: `maxOutputTokens` ->
   * `max_tokens`.
   */
  readonly names: Readonly<Partial<Record<NamedField, string>>>;
}

/**
 * Fields that a target may be unable to express, and whose names in the client's dialect are needed
 * for errors.
 */
export type NamedField =
  | "choices"
  | "parallelToolCalls"
  | "topK"
  | "presencePenalty"
  | "frequencyPenalty"
  | "seed"
  | "responseFormat"
  | "reasoning"
  | "temperature"
  | "topP"
  | "stop"
  | "toolChoice"
  | "user";

export interface ModelUsage extends Usage {
  /** Part of `outputTokens`. */
  readonly reasoningTokens: number | undefined;
}

export type Finish =
  | { readonly kind: "stop" }
  | { readonly kind: "stop_sequence"; readonly sequence: string }
  | { readonly kind: "length" }
  | { readonly kind: "tool_calls" }
  /** The vendor's filter or the model itself declined: never shown as a normal stop. */
  | { readonly kind: "refusal"; readonly explanation: string | undefined };

export interface ChatResponse {
  readonly id: string | undefined;
  readonly model: string | undefined;
  readonly content: readonly Block[];
  readonly finish: Finish;
  readonly usage: ModelUsage | undefined;
}

/** An error reported by an upstream. */
export interface UpstreamError {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly param: string | undefined;
}

export type StreamEvent =
  | { readonly kind: "start"; readonly id: string | undefined; readonly model: string | undefined }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "text_signature"; readonly signature: Signature }
  | { readonly kind: "thinking"; readonly vendor: DialectName; readonly text: string }
  /** Signs the preceding thinking and ends that block. */
  | { readonly kind: "thinking_signature"; readonly signature: Signature }
  | { readonly kind: "redacted"; readonly signature: Signature }
  | { readonly kind: "refusal"; readonly text: string }
  /** `call` numbers the tool calls of the answer from 0. */
  | {
      readonly kind: "call_start";
      readonly call: number;
      readonly id: string;
      readonly name: string;
      readonly signature: Signature | undefined;
    }
  | { readonly kind: "call_arguments"; readonly call: number; readonly text: string }
  /** A new block of the same kind begins (two thinking blocks in a row). */
  | { readonly kind: "block_end" }
  /** Cumulative: replaces earlier reports. */
  | { readonly kind: "usage"; readonly usage: ModelUsage; readonly final: boolean }
  | { readonly kind: "finish"; readonly finish: Finish }
  | { readonly kind: "error"; readonly error: UpstreamError };

/** Converts upstream events to model events. */
export interface StreamParser {
  /** One SSE event. */
  event(name: string | undefined, data: string): readonly StreamEvent[];
  /** Whether the final event has arrived. */
  readonly closed: boolean;
  /** Whether the stream may end here: false means that it is incomplete. */
  readonly complete: boolean;
}

/** The events that contain the answer itself. */
export type ContentEvent = Exclude<StreamEvent, { readonly kind: "usage" | "finish" | "error" }>;

/**
 * Converts model events to a client's text. Usage and the end are passed to `close`; the dialect
 * handles errors.
 */
export interface StreamSerialiser {
  event(event: ContentEvent): string;
  /** Writes the clean end of the answer; called once. */
  close(finish: Finish, usage: ModelUsage | undefined): string;
  /** Writes the end of a failed answer, in a dialect whose error events depend on those before. */
  fail?(error: PublicError): string;
}

/**
 * RequestEcho holds the fields of a request that its answer repeats. It must be small, because it
 * lives as long as the call.
 */
export interface RequestEcho {
  /** Members of the request that answers repeat unchanged. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Tools whose calls differ from those of functions, by the name that the upstream knows. */
  readonly tools: ReadonlyMap<string, EchoedTool>;
}

/** Tools that OpenAI defines and the client runs. */
export type DefinedToolName = "shell" | "local_shell" | "apply_patch";

/** A tool as its client knows it. */
export interface EchoedTool {
  readonly kind: "function" | "custom" | DefinedToolName;
  readonly name: string;
  readonly namespace: string | undefined;
}

/** Data that a response or stream in a client's dialect needs besides its content. */
export interface ResponseIdentity {
  readonly id: string;
  readonly model: string;
  /** Milliseconds. */
  readonly now: number;
  /** undefined for dialects whose answers repeat nothing of their request. */
  readonly echo?: RequestEcho | undefined;
}

/** The upstream's answer does not conform to its dialect: a 502, not the caller's error. */
export class UpstreamFormatError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UpstreamFormatError";
  }
}
