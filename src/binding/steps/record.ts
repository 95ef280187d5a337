/**
 * Step 6: the audit record, before anything is forwarded. A request that cannot be recorded is not
 * forwarded. A denied request does not wait for its record, and many denials are summarised in one
 * record.
 */
import type { StepServices } from "../step-services.ts";
import { isDenied, type Passage } from "../passage.ts";
import { requestFields, SERVICE_CALL } from "../service-call.ts";

export async function writeRecord(passage: Passage, world: StepServices): Promise<void> {
  if (!isDenied(passage) && !(await isRecorded(passage, world))) {
    passage.refusal = {
      status: 503,
      code: "audit_unavailable",
      message: "The audit log cannot be written, so the request was not forwarded. Try again.",
    };
  }
  if (isDenied(passage)) recordDenial(passage, world);
}

async function isRecorded(passage: Passage, { audit }: StepServices): Promise<boolean> {
  if (audit === undefined) return true;
  if (audit.refusing) return false;
  const event = { type: SERVICE_CALL, fields: requestFields(passage) };
  const outcome = await new Promise((resolve) => audit.append(event, resolve));
  return outcome !== "failed";
}

function recordDenial(passage: Passage, { refusals }: StepServices): void {
  const { refusal, violations, snapshot } = passage;
  passage.listed = refusals.record({
    caller: snapshot.workload,
    code: refusal?.code ?? violations[0]?.code ?? "denied",
    event: () => ({ type: SERVICE_CALL, fields: requestFields(passage) }),
  });
}
