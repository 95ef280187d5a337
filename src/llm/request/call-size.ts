/** CallSize: an upper bound of a call's tokens, estimated before a provider has counted them. */
import type { JsonSize } from "../../platform/json/scan.ts";
import { publicError, type PublicError } from "../../access/errors.ts";
import type { RequestFacts } from "./facts.ts";
import { estimatePromptTokens } from "./prompt-size.ts";
import type { LlmRoute } from "./routes.ts";

/** Tokens reserved for the answer if neither the request nor the caller has a maximum. */
export const ASSUMED_OUTPUT_TOKENS = 4_096;

export interface CallSize {
  readonly kind: "sized";
  readonly promptTokens: number;
  /** Maximum number of tokens of all answers together; 0 if the operation has no billed answer. */
  readonly outputTokens: number;
  /**
   * Maximum to request from the provider, for each answer; undefined if the request contains one.
   */
  readonly outputCap: number | undefined;
}

export type Size = CallSize | { readonly kind: "too_large"; readonly error: PublicError };

export interface Sizing {
  readonly route: LlmRoute;
  readonly facts: RequestFacts;
  readonly body: { readonly size: JsonSize };
  /** Prompt and answer together; undefined for no limit. */
  readonly maxTokensPerRequest: number | undefined;
}

/**
 * Estimates the prompt, and uses the maximum in the request. If the request has none, the rest of
 * `maxTokensPerRequest` is used and sent to the provider; without such a limit, a default is
 * assumed.
 */
export function sizeOf({ route, facts, body, maxTokensPerRequest }: Sizing): Size {
  const promptTokens = route.operation === "count_tokens" ? 0 : estimatePromptTokens(body.size);
  const asked = askedOutputTokens(route, facts);
  if (maxTokensPerRequest === undefined) {
    const outputTokens = asked ?? ASSUMED_OUTPUT_TOKENS * facts.choices;
    return { kind: "sized", promptTokens, outputTokens, outputCap: undefined };
  }
  const left = maxTokensPerRequest - promptTokens;
  if (left < (asked ?? facts.choices)) {
    return { kind: "too_large", error: tooLarge(maxTokensPerRequest, promptTokens, asked) };
  }
  const outputCap = asked === undefined ? Math.floor(left / facts.choices) : undefined;
  return { kind: "sized", promptTokens, outputTokens: asked ?? left, outputCap };
}

/** More than any model supports: keeps sums of client-supplied numbers within exact integers. */
const MOST_TOKENS = 1_000_000_000_000;

/** Returns the maximum output tokens in a request; undefined if it has none. */
export function askedOutputTokens(route: LlmRoute, facts: RequestFacts): number | undefined {
  if (route.operation !== "chat" && route.operation !== "responses") return 0;
  const { maxOutputTokens, choices } = facts;
  if (maxOutputTokens === undefined) return undefined;
  return Math.min(Math.ceil(maxOutputTokens) * choices, MOST_TOKENS);
}

function tooLarge(limit: number, promptTokens: number, asked: number | undefined): PublicError {
  const answer = asked === undefined ? "" : ` and up to ${asked} tokens of answer`;
  return publicError(
    "tokens_per_request_exceeded",
    `The limit maxTokensPerRequest of ${limit} does not allow this request: a prompt of ` +
      `about ${promptTokens} tokens${answer}. ` +
      "It does not reset: ask for less.",
  );
}
