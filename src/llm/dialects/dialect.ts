/**
 * What the pipeline asks of a dialect. A dialect is a folder that knows one vendor's wire format;
 * two dialects meet in the internal model of `model.ts`. Nothing here does I/O.
 */
import type { PublicError } from "../../access/errors.ts";
import type { DialectName } from "../../policy/snapshot.ts";

/**
 * Token counts of one call. `inputTokens` always includes cached reads and cache writes, whatever
 * the vendor does.
 */
export interface Usage {
  readonly inputTokens: number;
  /** Read from the prompt cache. */
  readonly cachedInputTokens: number;
  /**
   * Written to the cache with a 5 minute lifetime (the default lifetime where the vendor does not
   * say).
   */
  readonly cacheWrite5mTokens: number;
  /** Written to the cache with a 1 hour lifetime. */
  readonly cacheWrite1hTokens: number;
  /** Includes reasoning / thinking tokens. */
  readonly outputTokens: number;
}

/** What is read from every inbound body, in any dialect. */
export interface CallFacts {
  /** As the client wrote it; undefined on Gemini paths, where the path names it. */
  readonly model: string | undefined;
  readonly stream: boolean;
  /** The most output tokens the client asked for, for each answer. */
  readonly maxOutputTokens: number | undefined;
  /** Answers asked for at once: 1, mostly. */
  readonly choices: number;
  /** How much the model may think before it answers. */
  readonly reasoning: ReasoningBound;
  /** OpenAI `stream_options.include_usage === true`; other dialects always show usage. */
  readonly wantsUsage: boolean;
}

/** How much reasoning a request allows, which a stream may not show. */
export type ReasoningBound =
  | { readonly kind: "off" }
  | { readonly kind: "budget"; readonly tokens: number }
  /** The model decides how much. */
  | { readonly kind: "open" }
  /** The request does not say: it depends on the model. */
  | { readonly kind: "unspecified" };

/** A request that cannot be served as it is: becomes a 400 in the caller's dialect. */
export class BadRequestError extends Error {
  /** Where in the body, e.g. `messages[2].content[0].type`. */
  readonly param: string | undefined;
  /**
   * `invalid_request` for a malformed body, `unsupported_by_upstream` for what the target cannot
   * express.
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

/** How a stream ended, known after `end()`. */
export type StreamOutcome =
  | { readonly kind: "complete" }
  /** The upstream sent an error event. */
  | { readonly kind: "error"; readonly message: string }
  /** Ended without the dialect's closing event. */
  | { readonly kind: "cut" };

/**
 * Reads (and where needed rewrites) one upstream stream. `push` gets the bytes as they come, cut
 * anywhere, and returns what the client must receive: the very same Buffer where nothing changed.
 */
export interface StreamReader {
  push(chunk: Buffer): Buffer;
  /**
   * The upstream has ended. Returns the last bytes for the client: held-back bytes, and an explicit
   * error in the client's dialect where the stream was cut.
   */
  end(): Buffer;
  readonly outcome: StreamOutcome;
  /** As the upstream reported it so far, cumulative; undefined before the first report. */
  readonly usage: Usage | undefined;
  /**
   * Whether `usage` is the upstream's final word (not, for example, Anthropic's message_start
   * alone).
   */
  readonly usageIsFinal: boolean;
  /**
   * Bytes of text, thinking and tool arguments seen so far: for an estimate when usage never came.
   */
  readonly outputBytes: number;
  /** Events with content seen so far: each is a token at least. */
  readonly outputEvents: number;
  /** Whether any content (not only lifecycle frames) has been seen. */
  readonly sawContent: boolean;
}

/** The members of a request's body, each read when it is asked for. */
export interface BodyFields {
  get(name: string): unknown;
}

export interface Dialect {
  readonly name: DialectName;
  /** @throws BadRequestError when a field that decides has a value of the wrong type */
  readFacts(body: BodyFields): CallFacts;
  /** Usage of a complete (not streamed) response body; undefined where it carries none. */
  readUsage(body: unknown): Usage | undefined;
  /** This dialect's error body. */
  renderError(error: PublicError): string;
  /** An error event that ends a stream in this dialect. */
  renderStreamError(error: PublicError): string;
}

export type { DialectName };
