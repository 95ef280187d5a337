/**
 * The binding pipeline: eight steps, in the order of the list.
 *
 * In enforce mode the evaluation ends at the first violation; in audit mode every step runs. The
 * record is always written; the credential is injected, and the request is forwarded, only if it is
 * not denied.
 */
import type { RefusalLog } from "../audit/refusals.ts";
import type { AuditSink } from "../audit/sink.ts";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import type { ServiceRequest } from "../providers/contract.ts";
import type { BindingSnapshot } from "./binding.ts";
import { isDenied, type Passage } from "./passage.ts";
import { resolveAction } from "./steps/action.ts";
import { checkActionLists } from "./steps/action-lists.ts";
import { forward } from "./steps/forward.ts";
import { checkHttpRules } from "./steps/http-rules.ts";
import { injectCredentials } from "./steps/inject.ts";
import { writeRecord } from "./steps/record.ts";
import { routeByHost } from "./steps/route.ts";
import { checkScope } from "./steps/scope.ts";

/** Dependencies of the steps. */
export interface World {
  readonly clock: Clock;
  readonly log: Logger;
  /** undefined if nothing is recorded. */
  readonly audit: AuditSink | undefined;
  /** Limits records and log lines of denied requests. */
  readonly refusals: RefusalLog;
  /** Returns `address:port` of a host, from DNS servers only; undefined if it has none. */
  readonly resolve: (host: string) => Promise<string | undefined>;
}

interface Step {
  readonly run: (passage: Passage, world: World) => void | Promise<void>;
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
  world: World,
): Promise<Passage> {
  const passage: Passage = {
    id,
    request,
    snapshot,
    startedAt: world.clock.monotonic(),
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
    const running = run(passage, world);
    if (running !== undefined) await running;
  }
  return passage;
}
