/**
 * Estimates the usage of a call if the provider did not report it, because the client left or the
 * stream broke. An estimate is an upper bound as far as possible, because uncounted tokens are free
 * for the caller:
 *
 * - a whole answer that was never received costs its reservation: vendors complete and bill it;
 * - a stream costs the forwarded content, and the tokens that its model may have generated unseen:
 *   hidden reasoning, and content in transit. Both are bounded by the elapsed time.
 */
import type { Amounts } from "../../limits/contract.ts";
import type { Attempt, Call } from "../call.ts";
import { ASSUMED_OUTPUT_TOKENS, askedOutputTokens } from "../request/call-size.ts";
import type { Usage } from "../dialects/dialect.ts";
import { mayHaveRun } from "../answer/response-flags.ts";

/** No hosted model is faster, except small ones on special hardware. */
export const MAX_TOKENS_PER_SECOND = 300;

/** Code has some 3 bytes per token, English 4 and more. */
export const OUTPUT_BYTES_PER_TOKEN = 3.3;

/** The same as for prompts: see `llm/request/prompt-size.ts`. */
const INPUT_BYTES_PER_TOKEN = 3;

/** Without a limit that measures it, a larger body contains media: no prompt has more tokens. */
const MOST_INPUT_BYTES = 3_000_000;

/** Returns the largest use of a call that has not been answered. */
export function demandOf(call: Call): Amounts {
  return { tokens: inputTokens(call) + mostOutputTokens(call), microUsd: 0, requests: 1 };
}

/** @param now milliseconds, monotonic */
export function estimateUsage(call: Call, now: number): Usage {
  const streams = call.answer.streaming ?? call.request.facts.stream;
  const output = streams ? streamedTokens(call, now) : wholeTokens(call);
  const said = call.answer.partialUsage;
  if (said !== undefined) return { ...said, outputTokens: Math.max(said.outputTokens, output) };
  return usageOf(inputTokens(call), output);
}

/**
 * Returns an upper bound of the usage of a failed attempt: it was sent completely, and its provider
 * may have continued. Returns undefined if it cost nothing.
 */
export function estimateLostAttempt(call: Call, attempt: Attempt): Usage | undefined {
  const { failure, failedAt } = attempt;
  if (failure === undefined || failedAt === undefined || !mayHaveRun(failure)) return undefined;
  const most = mostOutputTokens(call);
  const output = call.request.facts.stream
    ? Math.min(most, inTime(failedAt - attempt.startedAt))
    : most;
  return usageOf(inputTokens(call), output);
}

function wholeTokens(call: Call): number {
  if (!call.answer.receivedWhole) return mostOutputTokens(call);
  const passed = Math.ceil(call.answer.bytes / OUTPUT_BYTES_PER_TOKEN);
  return Math.min(passed, askedOutputTokens(call.request.route, call.request.facts) ?? passed);
}

function streamedTokens(call: Call, now: number): number {
  const passed = Math.max(
    call.answer.events,
    Math.ceil(call.answer.bytes / OUTPUT_BYTES_PER_TOKEN),
  );
  const unseen = hiddenReasoning(call, now) + onItsWay(call, now);
  // The request's own maximum bounds the sum, unless more has already been received.
  return Math.max(passed, Math.min(mostOutputTokens(call), passed + unseen));
}

/** Hidden reasoning precedes the first content of the stream. */
function hiddenReasoning(call: Call, now: number): number {
  const { reasoning } = call.request.facts;
  if (reasoning.kind === "off") return 0;
  if (reasoning.kind === "unspecified" && !mayReason(call.target.model)) return 0;
  const spent = inTime((call.answer.firstContentAt ?? now) - attemptStart(call));
  return reasoning.kind === "budget" ? Math.min(reasoning.tokens, spent) : spent;
}

/** Content that the provider may have generated since the last received event. */
function onItsWay(call: Call, now: number): number {
  return inTime(now - (call.answer.lastProgressAt ?? attemptStart(call)));
}

function attemptStart(call: Call): number {
  return call.attempts.at(-1)?.startedAt ?? call.request.startedAt;
}

/** Families of models that reason by default, by their names. */
const REASONING_MODELS =
  /(?:^|[/:])(?:o\d|gpt-[5-9]|gpt-oss|gemini-(?:2\.5|[3-9])|deepseek-r|qwq|grok-[3-9])|think|reason/i;

function mayReason(model: string): boolean {
  return REASONING_MODELS.test(model);
}

function inTime(ms: number): number {
  return Math.ceil((Math.max(0, ms) / 1000) * MAX_TOKENS_PER_SECOND);
}

/** The reserved output: the maximum in the request, or the assumed default. */
function mostOutputTokens(call: Call): number {
  if (call.request.size !== undefined) return call.request.size.outputTokens;
  return (
    askedOutputTokens(call.request.route, call.request.facts) ??
    ASSUMED_OUTPUT_TOKENS * call.request.facts.choices
  );
}

function inputTokens(call: Call): number {
  if (call.request.size !== undefined) return call.request.size.promptTokens;
  return Math.ceil(Math.min(call.request.bytes, MOST_INPUT_BYTES) / INPUT_BYTES_PER_TOKEN);
}

function usageOf(input: number, output: number): Usage {
  return {
    inputTokens: input,
    cachedInputTokens: 0,
    cacheWrite5mTokens: 0,
    cacheWrite1hTokens: 0,
    outputTokens: output,
  };
}
