/**
 * Determines the LLM operation of a path. The paths are the vendors' own; below `/ext` they are for
 * holders of an access key. Anthropic's clients append `/v1` to their base URL, so
 * `{base_url}/ext/v1` becomes `/ext/v1/v1/...`.
 */
import { splitSurface, type Surface } from "../access/surface.ts";
import type { DialectName } from "./dialects/dialect.ts";

export type LlmOperation = "chat" | "count_tokens" | "embeddings" | "responses";

export interface LlmRoute {
  readonly surface: Surface;
  readonly operation: LlmOperation;
  /** Dialect of the caller. */
  readonly dialect: DialectName;
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
  "/v1/responses": { operation: "responses", dialect: "openai" },
  "/v1/messages": { operation: "chat", dialect: "anthropic" },
  "/v1/messages/count_tokens": { operation: "count_tokens", dialect: "anthropic" },
};

const GEMINI =
  /^\/(?:v1beta|v1)\/models\/(.+):(generateContent|streamGenerateContent|countTokens)$/;

/** @returns undefined if the path is not served, or its model is not valid percent-encoding. */
export function parseRoute(path: string): LlmRoute | undefined {
  const mark = path.indexOf("?");
  const { surface, pathname } = splitSurface(mark < 0 ? path : path.slice(0, mark));
  const query = mark < 0 ? "" : path.slice(mark + 1);
  const fixed = Object.hasOwn(FIXED, pathname) ? FIXED[pathname] : undefined;
  if (fixed !== undefined) return { surface, ...fixed, model: undefined, stream: undefined, query };
  const match = GEMINI.exec(pathname);
  if (match === null) return undefined;
  const model = decode(match[1] as string);
  if (model === undefined) return undefined;
  const method = match[2] as string;
  return {
    surface,
    operation: method === "countTokens" ? "count_tokens" : "chat",
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
  const path = splitSurface(fullPath).pathname;
  if (path.startsWith("/v1beta/") || path.startsWith("/v1/models/")) return "gemini";
  return path.startsWith("/v1/messages") ? "anthropic" : "openai";
}
