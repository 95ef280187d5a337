/**
 * Step 1: the host determines the Provider of a request. A request to an unbound host is refused,
 * and so is a request that the Provider's service might interpret in another way than the proxy.
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
    message: `The host ${host} is not bound to a Provider of ${passage.snapshot.workload}.`,
  };
}

function oddHeaderMessage(name: string): string {
  const shown = name.replaceAll(/[^!-~]/g, "?").slice(0, 64);
  return `The name of the header ${shown} contains characters besides letters, digits and hyphens, which servers interpret differently. Omit it, or use hyphens.`;
}
