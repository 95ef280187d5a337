/**
 * Step 3: the plugin determines the actions of a request. A request that it cannot resolve is a
 * violation: in doubt, deny.
 */
import type { Passage } from "../passage.ts";

export function resolveAction(passage: Passage): void {
  const { binding, request } = passage;
  if (binding === undefined) return;
  const resolution = binding.instance.resolveAction(request);
  passage.resolution = resolution;
  if (resolution.kind === "resolved") return;
  passage.violations.push({
    code: "unresolved_action",
    rule: "the action cannot be determined",
    message: [resolution.reason, resolution.hint ?? ""].filter(Boolean).map(sentence).join(" "),
  });
}

/** Plugins' reasons may or may not end with a full stop. */
function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
