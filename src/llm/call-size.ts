/** CallSize: how many tokens a call may come to, estimated before a provider has counted. */
import type { JsonSize } from "../platform/json/scan.ts";
import { publicError, type PublicError } from "../access/errors.ts";
import type { RequestFacts } from "./facts.ts";
import { estimatePromptTokens } from "./prompt-size.ts";
import type { LlmRoute } from "./routes.ts";

/** Reserved for the answer to a request that names no maximum, and whose caller has none; tokens. */
export const ASSUMED_OUTPUT_TOKENS = 4_096;

export interface CallSize {
  readonly kind: "sized";
  readonly promptTokens: number;
  /** Most tokens of all answers together; 0 where the operation has no answer to pay for. */
  readonly outputTokens: number;
  /** To be asked of the provider, for each answer; undefined where the request says it. */
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
 * Estimates the prompt, and takes the most that the request asks for. What a request does not say is
 * what `maxTokensPerRequest` leaves, and then the provider is told so; without such a limit it is
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

/** More than any model has: keeps sums of what clients write within exact integers. */
const MOST_TOKENS = 1_000_000_000_000;

/** Returns the most output tokens that a request asks for; undefined where it does not say. */
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
    `The limit maxTokensPerRequest of ${limit} does not allow this request: a prompt of about ${promptTokens} tokens${answer}. ` +
      "It does not reset: ask for less.",
  );
}
