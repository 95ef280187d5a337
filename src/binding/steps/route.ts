/** Step 1: the host says which Provider a request is for. A host that is bound to none goes nowhere. */
import type { Passage } from "../passage.ts";

export function routeByHost(passage: Passage): void {
  const { host } = passage.request;
  passage.binding = passage.snapshot.bindingOf(host);
  if (passage.binding !== undefined) return;
  passage.refusal = {
    status: 403,
    code: "unknown_host",
    message: `The host ${host} is bound to no Provider of ${passage.snapshot.workload}.`,
  };
}
