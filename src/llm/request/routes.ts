/**
 * Determines the LLM operation of a path. The paths are the vendors' own; below `/ext` they are for
 * holders of an access key. Anthropic's clients append `/v1` to their base URL, so
 * `{base_url}/ext/v1` becomes `/ext/v1/v1/...`.
 */
import { type Audience, EXTERNAL_PREFIX, splitAudience } from "../../access/audience.ts";
import type { DialectName, WireFormat } from "../dialects/dialect.ts";

/** `embed_content` is Gemini's request for one embedding; `embeddings` is one for several. */
export type LlmOperation = "chat" | "count_tokens" | "embeddings" | "embed_content" | "responses";

export interface LlmRoute {
  readonly audience: Audience;
  readonly operation: LlmOperation;
  /** Dialect of the caller. */
  readonly dialect: WireFormat;
  /** Model in the path (Gemini); undefined if the body names it. */
  readonly model: string | undefined;
  /** Streaming as set by the path (Gemini); undefined if the body sets it. */
  readonly stream: boolean | undefined;
  /** Query without `?`. */
  readonly query: string;
}

const FIXED: Readonly<Record<string, Pick<LlmRoute, "operation" | "dialect">>> = {
  "/v1/chat/completions": { operation: "chat", dialect: "openai" },
  "/v1/embeddings": { operation: "embeddings", dialect: "openai" },
  "/v1/responses": { operation: "responses", dialect: "responses" },
  "/v1/messages": { operation: "chat", dialect: "anthropic" },
  "/v1/messages/count_tokens": { operation: "count_tokens", dialect: "anthropic" },
};

/** Exact paths of calls, without Gemini's, all with POST. */
export const FIXED_PATHS: readonly string[] = Object.keys(FIXED);

/** Operations by the method at the end of Gemini's paths. */
const GEMINI_OPERATIONS: Readonly<Record<string, LlmOperation>> = {
  generateContent: "chat",
  streamGenerateContent: "chat",
  countTokens: "count_tokens",
  embedContent: "embed_content",
  batchEmbedContents: "embeddings",
};

/**
 * Gemini's paths, whose model may contain slashes. Google's SDK also uses /v1, and the Vercel AI
 * SDK leaves out `models/` before such a model.
 */
const GEMINI = new RegExp(
  `^/(?:v1beta|v1)/(?:models/(.+)|([^/]+/.+)):(${Object.keys(GEMINI_OPERATIONS).join("|")})$`,
);

/**
 * Gemini's paths as expressions of RE2 that match the whole path: one for embeddings, one for the
 * rest, because Envoy refuses an expression whose program has more than 100 instructions.
 */
export const GEMINI_PATHS: readonly string[] = [false, true].map((embeddings) => {
  const methods = Object.entries(GEMINI_OPERATIONS).flatMap(([method, operation]) =>
    isEmbedding(operation) === embeddings ? [method] : [],
  );
  return `/(?:v1beta|v1)/(?:models/.+|[^/]+/.+):(?:${methods.join("|")})`;
});

/** Gemini's paths of the external gateway. */
export const EXTERNAL_GEMINI_PATHS: readonly string[] = GEMINI_PATHS.map(
  (path) => `${EXTERNAL_PREFIX}${path}`,
);

/** Returns whether an operation is one of embeddings. */
export function isEmbedding(operation: LlmOperation): boolean {
  return operation === "embeddings" || operation === "embed_content";
}

/** @returns undefined if the path is not served, or its model is not valid percent-encoding. */
export function parseRoute(path: string): LlmRoute | undefined {
  const mark = path.indexOf("?");
  const { audience, pathname } = splitAudience(mark < 0 ? path : path.slice(0, mark));
  const query = mark < 0 ? "" : path.slice(mark + 1);
  const fixed = Object.hasOwn(FIXED, pathname) ? FIXED[pathname] : undefined;
  if (fixed !== undefined)
    return { audience, ...fixed, model: undefined, stream: undefined, query };
  const match = GEMINI.exec(pathname);
  if (match === null) return undefined;
  const model = decode((match[1] ?? match[2]) as string);
  if (model === undefined) return undefined;
  const method = match[3] as string;
  return {
    audience,
    operation: GEMINI_OPERATIONS[method] as LlmOperation,
    dialect: "gemini",
    model,
    stream: method === "streamGenerateContent",
    query,
  };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Returns the dialect for the error of an unknown path: the one whose clients would use it. */
export function dialectOfPath(fullPath: string): DialectName {
  const path = splitAudience(fullPath).pathname;
  if (path.startsWith("/v1beta/") || path.startsWith("/v1/models/")) return "gemini";
  return path.startsWith("/v1/messages") ? "anthropic" : "openai";
}
