/** Step 2: `policy.httpRules`, on method and path as on the wire. */
import type { Passage } from "../passage.ts";

export function checkHttpRules(passage: Passage): void {
  const { request, binding } = passage;
  const verdict = binding?.policy.httpRules(request.method, request.path);
  if (verdict?.kind !== "denied") return;
  passage.violations.push({
    code: "http_rule",
    rule: verdict.rule,
    message: `${request.method} on this path is not allowed for ${binding?.name ?? ""}.`,
  });
}
