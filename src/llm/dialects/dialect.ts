/** The types that the pipeline and the dialects share; `contract.ts` has the dialects' contract. */
import type { DialectName } from "../../policy/snapshot.ts";

/**
 * Token counts of one call. `inputTokens` always includes cached reads and cache writes,
 * independent of the vendor's convention.
 */
export interface Usage {
  readonly inputTokens: number;
  /** Read from the prompt cache. */
  readonly cachedInputTokens: number;
  /**
   * Written to the cache with a 5 minute lifetime (the default lifetime if the vendor does not
   * report one).
   */
  readonly cacheWrite5mTokens: number;
  /** Written to the cache with a 1 hour lifetime. */
  readonly cacheWrite1hTokens: number;
  /** Includes reasoning / thinking tokens. */
  readonly outputTokens: number;
}

/** Facts that are read from every inbound body, in any dialect. */
export interface CallFacts {
  /** Model as the client wrote it; undefined on Gemini paths, which contain it. */
  readonly model: string | undefined;
  readonly stream: boolean;
  /** Maximum output tokens requested by the client, for each answer. */
  readonly maxOutputTokens: number | undefined;
  /** Number of requested answers, usually 1. */
  readonly choices: number;
  /** Bound of the model's reasoning before it answers. */
  readonly reasoning: ReasoningBound;
  /** OpenAI `stream_options.include_usage === true`; other dialects always show usage. */
  readonly wantsUsage: boolean;
}

/** The amount of reasoning that a request allows, which a stream may hide. */
export type ReasoningBound =
  | { readonly kind: "off" }
  | { readonly kind: "budget"; readonly tokens: number }
  /** The model decides the amount. */
  | { readonly kind: "open" }
  /** The request does not specify it: it depends on the model. */
  | { readonly kind: "unspecified" };

/** A request that cannot be served: becomes a 400 in the caller's dialect. */
export class BadRequestError extends Error {
  /** Place in the body, e.g. `messages[2].content[0].type`. */
  readonly param: string | undefined;
  /**
   * `invalid_request` for a malformed body, `unsupported_by_upstream` for a request that the target
   * cannot express.
   */
  readonly code: "invalid_request" | "unsupported_by_upstream";

  constructor(
    message: string,
    param?: string,
    code: "invalid_request" | "unsupported_by_upstream" = "invalid_request",
  ) {
    super(message);
    this.name = "BadRequestError";
    this.param = param;
    this.code = code;
  }
}

/** Outcome of a stream, known after `end()`. */
export type StreamOutcome =
  | { readonly kind: "complete" }
  /** The upstream sent an error event. */
  | { readonly kind: "error"; readonly message: string }
  /** Ended without the dialect's final event. */
  | { readonly kind: "cut" };

/**
 * Reads (and if necessary rewrites) one upstream stream. `push` receives the bytes as they arrive,
 * split at any position, and returns the bytes for the client: the same Buffer if nothing changed.
 */
export interface StreamReader {
  push(chunk: Buffer): Buffer;
  /**
   * The upstream has ended. Returns the last bytes for the client: held-back bytes, and an explicit
   * error in the client's dialect if the stream was incomplete.
   */
  end(): Buffer;
  readonly outcome: StreamOutcome;
  /** Usage reported by the upstream so far, cumulative; undefined before the first report. */
  readonly usage: Usage | undefined;
  /**
   * Whether `usage` is the upstream's final report (not, for example, only Anthropic's
   * message_start).
   */
  readonly usageIsFinal: boolean;
  /** Bytes of text, thinking and tool arguments so far, for an estimate if usage is missing. */
  readonly outputBytes: number;
  /** Events with content so far: each is at least one token. */
  readonly outputEvents: number;
  /** Whether any content (not only lifecycle frames) has arrived. */
  readonly sawContent: boolean;
}

/** The members of a request's body, each parsed on demand. */
export interface BodyFields {
  get(name: string): unknown;
}

/**
 * A format of requests and answers: a provider's dialect, or OpenAI's Responses API, which only
 * some of the providers with OpenAI's dialect serve.
 */
export type WireFormat = DialectName | "responses";

export type { DialectName };
