/**
 * What the audit chain is told of LLM calls: one LLM_CALL for each call, however it ended, and
 * LLM_REFUSED for what never became one. No prompt, no answer, no key.
 */
import type { Settlement } from "./settlement.ts";
import type { AuditValue } from "../audit/event.ts";
import type { RefusalLog } from "../audit/refusals.ts";
import type { AuditSink } from "../audit/sink.ts";
import { clientText, optionalClientText } from "../platform/client-text.ts";
import type { Attempt, Call, CallOutcome } from "./call.ts";
import { callerFields, callerName } from "../access/caller.ts";
import { refusalEvent, type RefusedRequest } from "../access/refusal.ts";

/**
 * Told when the record's fate is known; false where it could not be kept and must be
 * (`--audit-on-failure refuse`).
 */
export type Recorded = (kept: boolean) => void;

export interface AuditTrailOptions {
  readonly sink: AuditSink;
  readonly refusals: RefusalLog;
}

/** Type of the records of refusals. */
export const LLM_REFUSED = "LLM_REFUSED";

export class AuditTrail {
  readonly #options: AuditTrailOptions | undefined;

  /** @param options undefined where nothing is recorded (`--no-audit`) */
  constructor(options: AuditTrailOptions | undefined) {
    this.#options = options;
  }

  /** While true nothing new may begin: it could not be recorded. */
  get refusing(): boolean {
    return this.#options?.sink.refusing ?? false;
  }

  called(call: Call, outcome: CallOutcome, settlement: Settlement, recorded: Recorded): void {
    if (this.#options === undefined) return recorded(true);
    const event = { type: "LLM_CALL", fields: callFields(call, outcome, settlement) };
    this.#options.sink.append(event, (fate) => recorded(fate !== "failed"));
  }

  /** Nobody waits for the record of a refusal, and of many refusals it tells together. */
  refused(request: RefusedRequest): void {
    this.#options?.refusals.record({
      caller: callerName(request.origin.policy),
      code: request.error.code,
      event: () => refusalEvent(LLM_REFUSED, request),
    });
  }
}

/** Members stand by name: what is in the chain's order costs it a quarter (audit/record.ts). */
type Fields = Record<string, AuditValue>;

function callFields(call: Call, outcome: CallOutcome, settlement: Settlement): Fields {
  const { usage } = settlement;
  const { access_key, source, workload } = callerFields(call.permit.caller);
  return {
    access_key,
    asked: clientText(call.permit.grant.ref),
    attempts: call.attempts.map((attempt) => attemptFields(attempt, settlement)),
    cached_input_tokens: usage?.cachedInputTokens ?? 0,
    call: call.id,
    client_ip: call.address,
    code: optionalClientText(outcome.code),
    cost_usd: settlement.costUsd,
    dialect: call.route.dialect,
    duration_ms: settlement.durationMs,
    end: outcome.end,
    input_tokens: usage?.inputTokens ?? 0,
    model: clientText(call.target.model),
    operation: call.route.operation,
    output_tokens: usage?.outputTokens ?? 0,
    provider: call.target.provider.name,
    source,
    status: outcome.status,
    stream: call.stream,
    usage: settlement.usageKind,
    workload,
  };
}

function attemptFields(attempt: Attempt, { lost }: Settlement): Fields {
  const { target, failure } = attempt;
  const usage = lost.find((one) => one.attempt === attempt)?.usage;
  return {
    // An upper bound of what an attempt without an answer may have cost.
    estimated_tokens: usage === undefined ? undefined : usage.inputTokens + usage.outputTokens,
    flags: failure === undefined || failure.flags === "" ? undefined : failure.flags,
    model: clientText(target.model),
    provider: target.provider.name,
    status: failure?.status,
  };
}
