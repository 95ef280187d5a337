/** Step 4: `policy.deny`, then `policy.allow`, for every action of the request. */
import { actionsOf, type Passage } from "../passage.ts";

export function checkActionLists(passage: Passage): void {
  const { binding } = passage;
  if (binding === undefined) return;
  const { actions } = binding.policy;
  for (const { action, broader } of actionsOf(passage)) {
    const verdict = actions.judge(action, broader);
    if (verdict.kind === "allowed") continue;
    passage.violations.push({
      code: "action_denied",
      rule: verdict.rule,
      message: `The action ${action} is not allowed for ${binding.name}.`,
      action,
      ...(actions.allow === undefined ? {} : { allowed: actions.allow }),
    });
  }
}
