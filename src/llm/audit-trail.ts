/**
 * What the audit chain is told of LLM calls: one LLM_CALL for each call, however it ended, and LLM_REFUSED for what never
 * became one. No prompt, no answer, no key.
 */
import type { AuditEvent, AuditValue } from "../audit/event.ts";
import type { AuditSink } from "../audit/sink.ts";
import type { Clock } from "../platform/clock.ts";
import type { CallerPolicy } from "../policy/snapshot.ts";
import type { Settlement } from "./accounting.ts";
import type { Refusal } from "./admission.ts";
import type { Call, CallOutcome } from "./call.ts";

/** Told when the record's fate is known; false where it could not be kept and must be (`--audit-on-failure refuse`). */
export type Recorded = (kept: boolean) => void;

/** Callers nobody knows could fill a disk: of their refusals in one second these get a record each, the rest one together. */
export const ANONYMOUS_RECORDS_PER_SECOND = 50;

const SECOND_MS = 1_000;

export class AuditTrail {
  readonly #sink: AuditSink | undefined;
  readonly #clock: Clock;
  /** Anonymous refusals of the second under way. */
  #anonymous = 0;
  readonly #unlisted = new Map<string, number>();

  /** @param sink undefined where nothing is recorded (`--no-audit`) */
  constructor(sink: AuditSink | undefined, clock: Clock) {
    this.#sink = sink;
    this.#clock = clock;
  }

  /** While true nothing new may begin: it could not be recorded. */
  get refusing(): boolean {
    return this.#sink?.refusing ?? false;
  }

  called(call: Call, outcome: CallOutcome, settlement: Settlement, recorded: Recorded): void {
    this.#append({ type: "LLM_CALL", fields: callFields(call, outcome, settlement) }, recorded);
  }

  refused({ who, error }: Pick<Refusal, "who" | "error">, recorded: Recorded): void {
    if (who.policy === undefined && !this.#listAnonymous(error.code)) return recorded(true);
    const { access_key, source, workload } = policyFields(who.policy);
    const fields = {
      access_key,
      asked: who.model,
      client_ip: who.address,
      code: error.code,
      path: who.path,
      source,
      status: error.status,
      workload,
    };
    this.#append({ type: "LLM_REFUSED", fields }, recorded);
  }

  /** Whether a refusal of a caller nobody knows gets its own record; if not, it is counted. */
  #listAnonymous(code: string): boolean {
    if (this.#anonymous === 0) this.#clock.after(SECOND_MS, () => this.#closeSecond());
    this.#anonymous += 1;
    if (this.#anonymous <= ANONYMOUS_RECORDS_PER_SECOND) return true;
    this.#unlisted.set(code, (this.#unlisted.get(code) ?? 0) + 1);
    return false;
  }

  #closeSecond(): void {
    this.#anonymous = 0;
    if (this.#unlisted.size === 0) return;
    const codes = Object.fromEntries(this.#unlisted);
    const count = [...this.#unlisted.values()].reduce((sum, each) => sum + each, 0);
    this.#unlisted.clear();
    this.#append({ type: "LLM_REFUSED", fields: { count, codes } }, () => {});
  }

  #append(event: AuditEvent, recorded: Recorded): void {
    if (this.#sink === undefined) return recorded(true);
    this.#sink.append(event, (outcome) => recorded(outcome !== "failed"));
  }
}

/** Members stand by name: what is in the chain's order costs it a quarter (audit/record.ts). */
type Fields = Record<string, AuditValue>;

function callFields(call: Call, outcome: CallOutcome, settlement: Settlement): Fields {
  const { usage } = settlement;
  const { access_key, source, workload } = policyFields(call.permit.caller);
  return {
    access_key,
    asked: call.permit.grant.ref,
    attempts: call.attempts.map(({ provider, model, failure }) => ({
      flags: failure === undefined || failure.flags === "" ? undefined : failure.flags,
      model,
      provider,
      status: failure?.status,
    })),
    cached_input_tokens: usage?.cachedInputTokens ?? 0,
    call: call.id,
    client_ip: call.address,
    code: outcome.code,
    cost_usd: settlement.costUsd,
    dialect: call.route.dialect,
    duration_ms: settlement.durationMs,
    end: outcome.end,
    input_tokens: usage?.inputTokens ?? 0,
    model: call.target.model,
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

/** `workload` as the interface has it; names of keys are unique in their namespace only, so `access_key` says that too. */
function policyFields(policy: CallerPolicy | undefined): {
  readonly access_key?: string;
  readonly source?: string;
  readonly workload?: string;
} {
  if (policy === undefined) return {};
  if (policy.kind === "agent") return { workload: policy.workload };
  return {
    workload: policy.workload,
    source: "external",
    access_key: `${policy.namespace}/${policy.name}`,
  };
}
