/**
 * The binding pipeline: eight steps, in the order of the list.
 *
 * In enforce mode the evaluation ends at the first violation; in audit mode every step runs. The
 * record is always written; the credential is injected, and the request is forwarded, only if it is
 * not denied.
 */
import type { ServiceRequest } from "../providers/contract.ts";
import type { BindingSnapshot } from "./binding.ts";
import { isDenied, type Passage } from "./passage.ts";
import type { StepServices } from "./step-services.ts";
import { resolveAction } from "./steps/action.ts";
import { checkActionLists } from "./steps/action-lists.ts";
import { forward } from "./steps/forward.ts";
import { checkHttpRules } from "./steps/http-rules.ts";
import { injectCredentials } from "./steps/inject.ts";
import { writeRecord } from "./steps/record.ts";
import { routeByHost } from "./steps/route.ts";
import { checkScope } from "./steps/scope.ts";

interface Step {
  readonly run: (passage: Passage, services: StepServices) => void | Promise<void>;
  /** `undenied`: only while the request is not denied. */
  readonly when: "undenied" | "always";
}

export const STEPS: readonly Step[] = [
  { run: routeByHost, when: "undenied" },
  { run: checkHttpRules, when: "undenied" },
  { run: resolveAction, when: "undenied" },
  { run: checkActionLists, when: "undenied" },
  { run: checkScope, when: "undenied" },
  { run: writeRecord, when: "always" },
  { run: injectCredentials, when: "undenied" },
  { run: forward, when: "undenied" },
];

export async function judge(
  id: string,
  request: ServiceRequest,
  snapshot: BindingSnapshot,
  services: StepServices,
): Promise<Passage> {
  const passage: Passage = {
    id,
    request,
    snapshot,
    startedAt: services.clock.monotonic(),
    binding: undefined,
    resolution: undefined,
    violations: [],
    refusal: undefined,
    injection: undefined,
    upstream: undefined,
    listed: true,
  };
  for (const { run, when } of STEPS) {
    if (when === "undenied" && isDenied(passage)) continue;
    const running = run(passage, services);
    if (running !== undefined) await running;
  }
  return passage;
}
