/**
 * Step 3: the plugin says what a request does. What it cannot say is a violation: on doubt, deny.
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
    rule: "the action cannot be told",
    message: [resolution.reason, resolution.hint ?? ""].filter(Boolean).map(sentence).join(" "),
  });
}

/** Plugins' reasons come with and without a full stop. */
function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
