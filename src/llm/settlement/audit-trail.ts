/**
 * Audit records of LLM calls: one LLM_CALL for each call with any outcome, and LLM_REFUSED for
 * requests that never became a call. They contain no prompt, no answer and no key.
 */
import type { CallRecorder, Recorded, SettledCall, Settlement } from "./settlement.ts";
import type { AuditValue } from "../../audit/event.ts";
import type { RefusalLog } from "../../audit/refusals/refusals.ts";
import type { AuditSink } from "../../audit/sink.ts";
import { clientText, optionalClientText } from "../../platform/client-text.ts";
import type { Attempt } from "../call.ts";
import { callerFields, callerName } from "../../access/caller.ts";
import { refusalEvent, type RefusedRequest } from "../../access/refusal.ts";

export interface AuditTrailOptions {
  readonly sink: AuditSink;
  readonly refusals: RefusalLog;
}

/** Type of the records of refusals. */
export const LLM_REFUSED = "LLM_REFUSED";

export class AuditTrail implements CallRecorder {
  readonly #options: AuditTrailOptions | undefined;

  /** @param options undefined if nothing is recorded (`--no-audit`) */
  constructor(options: AuditTrailOptions | undefined) {
    this.#options = options;
  }

  /** While true, no new calls may begin, because they could not be recorded. */
  get refusing(): boolean {
    return this.#options?.sink.refusing ?? false;
  }

  record(settled: SettledCall, recorded: Recorded): void {
    if (this.#options === undefined) return recorded(true);
    const event = { type: "LLM_CALL", fields: callFields(settled) };
    this.#options.sink.append(event, (fate) => recorded(fate !== "failed"));
  }

  /** Records a refusal. Nobody waits for the record, and one record summarises many refusals. */
  refused(request: RefusedRequest): void {
    this.#options?.refusals.record({
      caller: callerName(request.origin.policy),
      code: request.error.code,
      event: () => refusalEvent(LLM_REFUSED, request),
    });
  }
}

/**
 * Members are sorted by name: the chain encodes sorted members at a quarter of the cost
 * (audit/chain/record.ts).
 */
type Fields = Record<string, AuditValue>;

function callFields({ call, outcome, settlement }: SettledCall): Fields {
  const { usage } = settlement;
  const { access_key, source, workload } = callerFields(call.request.permit.caller);
  return {
    access_key,
    asked: clientText(call.request.permit.grant.ref),
    attempts: call.attempts.map((attempt) => attemptFields(attempt, settlement)),
    cached_input_tokens: usage?.cachedInputTokens ?? 0,
    call: call.request.id,
    client_ip: call.request.address,
    code: optionalClientText(outcome.code),
    cost_usd: settlement.costUsd,
    dialect: call.request.route.dialect,
    duration_ms: settlement.durationMs,
    end: outcome.end,
    input_tokens: usage?.inputTokens ?? 0,
    model: clientText(call.target.model),
    operation: call.request.route.operation,
    output_tokens: usage?.outputTokens ?? 0,
    provider: call.target.provider.name,
    source,
    status: outcome.status,
    stream: call.request.facts.stream,
    usage: settlement.usageKind,
    workload,
  };
}

function attemptFields(attempt: Attempt, { lost }: Settlement): Fields {
  const { target, failure } = attempt;
  const usage = lost.find((one) => one.attempt === attempt)?.usage;
  return {
    // An upper bound of the cost of an attempt without an answer.
    estimated_tokens: usage === undefined ? undefined : usage.inputTokens + usage.outputTokens,
    flags: failure === undefined || failure.flags === "" ? undefined : failure.flags,
    model: clientText(target.model),
    provider: target.provider.name,
    status: failure?.status,
  };
}
