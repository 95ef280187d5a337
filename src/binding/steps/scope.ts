/** Step 5: `spec.scope`, for every resource that the request touches. */
import { actionsOf, type Passage } from "../passage.ts";

export function checkScope(passage: Passage): void {
  const { binding } = passage;
  if (binding === undefined) return;
  for (const { action, resources } of actionsOf(passage)) {
    const verdict = binding.policy.scope(resources);
    if (verdict.kind === "inside") continue;
    passage.violations.push({
      code: "out_of_scope",
      rule: verdict.rule,
      message:
        verdict.resource === ""
          ? `The resources of ${action} here are outside the scope of ${binding.name}.`
          : `${verdict.resource} is outside the scope of ${binding.name}.`,
      action,
      ...(verdict.resource === "" ? {} : { resource: verdict.resource }),
    });
  }
}
