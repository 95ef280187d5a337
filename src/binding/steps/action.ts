/** Step 3: the plugin says what a request does. What it cannot say is a violation: on doubt, deny. */
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
    message: resolution.hint === undefined ? resolution.reason : `${resolution.reason} ${resolution.hint}`,
  });
}
