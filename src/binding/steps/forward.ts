/**
 * Step 8: the address of the real endpoint, resolved through DNS servers only, never through the
 * hosts file.
 */
import type { StepServices } from "../step-services.ts";
import type { Passage } from "../passage.ts";

export async function forward(passage: Passage, { resolve }: StepServices): Promise<void> {
  const address = await resolve(passage.request.host);
  if (address === undefined) {
    passage.refusal = {
      status: 502,
      code: "host_not_found",
      message: `DNS has no address for ${passage.request.host}.`,
    };
    return;
  }
  passage.upstream = address;
}
