/**
 * Step 1: the host says which Provider a request is for. A host that is bound to none goes nowhere,
 * nor does a request that the Provider's service might read in another way than it is judged.
 */
import { disguisedCredential, oddHeader } from "../disguised.ts";
import type { Passage } from "../passage.ts";
import { asksForAnother } from "../rewriting.ts";

export function routeByHost(passage: Passage): void {
  const { request } = passage;
  const { host } = request;
  passage.binding = passage.snapshot.bindingOf(host);
  if (passage.binding !== undefined) {
    const odd = oddHeader(request.headers);
    const message =
      (odd === undefined ? undefined : oddHeaderMessage(odd)) ??
      asksForAnother(request) ??
      disguisedCredential(request, passage.binding.plugin);
    if (message !== undefined)
      passage.refusal = { status: 400, code: "malformed_request", message };
    return;
  }
  passage.refusal = {
    status: 403,
    code: "unknown_host",
    message: `The host ${host} is bound to no Provider of ${passage.snapshot.workload}.`,
  };
}

function oddHeaderMessage(name: string): string {
  const shown = name.replaceAll(/[^!-~]/g, "?").slice(0, 64);
  return `The name of the header ${shown} has something besides letters, digits and hyphens, which servers read differently. Leave it out, or use hyphens.`;
}
