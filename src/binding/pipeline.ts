/**
 * The binding pipeline: eight steps, in the order of the interface.
 *
 * Judging ends at the first violation in enforce mode; in audit mode every step has its say. The
 * record is written always; the credential goes on, and the request leaves, only where nothing
 * stands against it.
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

/** What the steps use of the world. */
export interface World {
  readonly clock: Clock;
  readonly log: Logger;
  /** undefined where nothing is recorded. */
  readonly audit: AuditSink | undefined;
  /** Limits records and log lines of denied requests. */
  readonly refusals: RefusalLog;
  /** `address:port` of a host, from DNS alone; undefined where it has none. */
  readonly resolve: (host: string) => Promise<string | undefined>;
}

interface Step {
  readonly run: (passage: Passage, world: World) => void | Promise<void>;
  /** `undenied`: while nothing stands against the request. */
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
