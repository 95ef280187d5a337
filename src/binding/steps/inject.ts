/** Step 7: removes the agent's own credentials in every mode, and injects the real one. */
import { clientText } from "../../platform/client-text.ts";
import { InjectionError } from "../../providers/contract.ts";
import type { StepServices } from "../step-services.ts";
import type { Passage } from "../passage.ts";

export async function injectCredentials(passage: Passage, { log }: StepServices): Promise<void> {
  const { binding, request } = passage;
  if (binding === undefined) return;
  try {
    passage.injection = await binding.instance.injectCredentials(request);
  } catch (error) {
    if (!(error instanceof InjectionError)) throw error;
    log.warn(
      { binding: binding.name, reason: clientText(error.message) },
      "no credential to inject",
    );
    passage.refusal = {
      status: error.status === 400 ? 400 : error.status,
      code: "credential_unavailable",
      message: error.message,
    };
  }
}
