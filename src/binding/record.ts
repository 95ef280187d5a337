/**
 * The audit record of a verdict, before anything is forwarded. A request that cannot be recorded is
 * not forwarded. A denied request does not wait for its record, and many denials are summarised in
 * one record.
 */
import { recordType, requestFields } from "./service-call.ts";
import type { StepServices } from "./step-services.ts";
import type { Denied, JudgedCall, ServiceVerdict } from "./verdict.ts";

export interface RecordedVerdict {
  readonly verdict: ServiceVerdict;
  /** Whether the request has a record of its own. */
  readonly listed: boolean;
}

/** Records a verdict. Returns a denial instead of a permit that cannot be recorded. */
export async function record(call: JudgedCall, services: StepServices): Promise<RecordedVerdict> {
  const { arrival, verdict } = call;
  if (verdict.kind === "permitted" && (await isRecorded(call, services))) {
    return { verdict, listed: true };
  }
  const denied = verdict.kind === "denied" ? verdict : unrecordable(verdict);
  const { refusal, violations } = denied;
  const listed = services.refusals.record({
    caller: arrival.snapshot.workload,
    code: refusal?.code ?? violations[0]?.code ?? "denied",
    event: () => ({
      type: recordType(denied),
      fields: requestFields({ arrival, verdict: denied }),
    }),
  });
  return { verdict: denied, listed };
}

async function isRecorded(call: JudgedCall, { audit }: StepServices): Promise<boolean> {
  if (audit === undefined) return true;
  if (audit.refusing) return false;
  const event = { type: recordType(call.verdict), fields: requestFields(call) };
  const outcome = await new Promise((resolve) => audit.append(event, resolve));
  return outcome !== "failed";
}

function unrecordable(verdict: ServiceVerdict): Denied {
  return {
    ...verdict,
    kind: "denied",
    others: [],
    refusal: {
      status: 503,
      code: "audit_unavailable",
      message: "The audit log cannot be written, so the request was not forwarded. Try again.",
    },
  };
}
