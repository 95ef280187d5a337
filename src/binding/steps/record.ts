/** Step 6: the audit record, before anything leaves. What cannot be recorded does not leave. */
import type { World } from "../pipeline.ts";
import type { Passage } from "../passage.ts";
import { requestFields } from "../service-call.ts";

export async function writeRecord(passage: Passage, { audit }: World): Promise<void> {
  if (audit === undefined) return;
  const outcome = await new Promise((resolve) =>
    audit.append({ type: "SERVICE_CALL", fields: requestFields(passage) }, resolve),
  );
  if (outcome !== "failed") return;
  passage.refusal = {
    status: 503,
    code: "audit_unavailable",
    message: "The audit log cannot be written, and nothing leaves unrecorded. Try again.",
  };
}
