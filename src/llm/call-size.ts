/** How large a call may become, as far as a limit asks. */
import type { CallerPolicy } from "../policy/snapshot.ts";
import type { PriceBook } from "../pricing/price-book.ts";
import { ASSUMED_OUTPUT_TOKENS, type Demand, priceDemand } from "./budget.ts";
import type { PublicError } from "./dialects/dialect.ts";
import { publicError } from "./errors.ts";
import type { RequestFacts } from "./facts.ts";
import { estimatePromptTokens } from "./prompt-size.ts";
import type { LlmRoute } from "./routes.ts";

export type Size =
  /** No limit asks. */
  | { readonly kind: "unlimited"; readonly outputCap: undefined }
  | {
      readonly kind: "sized";
      readonly promptTokens: number;
      readonly outputTokens: number;
      /** To be asked of the provider, for each answer; undefined where the request says it. */
      readonly outputCap: number | undefined;
    }
  | { readonly kind: "too_large"; readonly error: PublicError };

export interface Sizing {
  readonly caller: CallerPolicy;
  readonly route: LlmRoute;
  readonly facts: RequestFacts;
  readonly body: unknown;
  /** Whether a budget asks. */
  readonly limited: boolean;
}

/** More than any model has: keeps sums of what clients write within exact integers. */
const MOST_TOKENS = 1_000_000_000_000;

/**
 * The prompt, and the most that is asked for. What a request does not say is what `maxTokensPerRequest` leaves, and then
 * the provider is told so; without such a limit it is assumed.
 */
export function sizeOf({ caller, route, facts, body, limited }: Sizing): Size {
  const perRequest = caller.kind === "agent" ? caller.limits.maxTokensPerRequest : undefined;
  if (perRequest === undefined && !limited) return { kind: "unlimited", outputCap: undefined };
  const promptTokens = route.operation === "count_tokens" ? 0 : estimatePromptTokens(body);
  const answers = route.operation === "chat" || route.operation === "responses";
  const asked = answers ? total(facts.maxOutputTokens, facts.choices) : 0;
  if (perRequest === undefined) {
    return {
      kind: "sized",
      promptTokens,
      outputTokens: asked ?? ASSUMED_OUTPUT_TOKENS * facts.choices,
      outputCap: undefined,
    };
  }
  const left = perRequest - promptTokens;
  if (left < (asked ?? facts.choices))
    return { kind: "too_large", error: tooLarge(perRequest, promptTokens, asked) };
  const outputCap = asked === undefined ? Math.floor(left / facts.choices) : undefined;
  return { kind: "sized", promptTokens, outputTokens: asked ?? left, outputCap };
}

export function demandOf(
  { promptTokens, outputTokens }: Extract<Size, { kind: "sized" }>,
  model: string,
  prices: PriceBook,
): Demand {
  return {
    promptTokens,
    outputTokens,
    microUsd: priceDemand(prices, model, promptTokens, outputTokens),
  };
}

function total(tokens: number | undefined, choices: number): number | undefined {
  return tokens === undefined ? undefined : Math.min(Math.ceil(tokens) * choices, MOST_TOKENS);
}

function tooLarge(limit: number, promptTokens: number, asked: number | undefined): PublicError {
  const answer = asked === undefined ? "" : ` and up to ${asked} tokens of answer`;
  return publicError(
    "tokens_per_request_exceeded",
    `The limit maxTokensPerRequest of ${limit} does not allow this request: a prompt of about ${promptTokens} tokens${answer}. ` +
      "It does not reset: ask for less.",
  );
}
