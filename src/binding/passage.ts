/** One request on its way through the steps: what each of them has found out so far. */
import type {
  ActionResolution,
  Injection,
  ResolvedAction,
  ServiceRequest,
} from "../providers/contract.ts";
import type { Binding, BindingSnapshot } from "./binding.ts";

/** What a policy has against a request. */
export interface Violation {
  readonly code: "http_rule" | "unresolved_action" | "action_denied" | "out_of_scope";
  /** The part of the spec that says so. */
  readonly rule: string;
  /** A sentence for the agent. */
  readonly message: string;
  readonly action?: string;
  readonly resource?: string;
  /** What would be allowed, as the spec has it. */
  readonly allowed?: readonly string[];
}

/** Why a request goes nowhere, whatever the mode. */
export interface Refusal {
  readonly status: 400 | 403 | 421 | 502 | 503;
  readonly code: string;
  readonly message: string;
}

export interface Passage {
  readonly id: string;
  readonly request: ServiceRequest;
  readonly snapshot: BindingSnapshot;
  /** Milliseconds, monotonic. */
  readonly startedAt: number;
  binding: Binding | undefined;
  resolution: ActionResolution | undefined;
  /** The first counts; more only in audit mode. */
  readonly violations: Violation[];
  refusal: Refusal | undefined;
  injection: Injection | undefined;
  /** Where it goes: `192.0.2.1:443`. */
  upstream: string | undefined;
  /** Whether it has a record of its own, and a line in the log. */
  listed: boolean;
}

/** The actions that were resolved; none where they could not be. */
export function actionsOf({ resolution }: Passage): readonly ResolvedAction[] {
  return resolution?.kind === "resolved" ? resolution.actions : [];
}

/** In enforce mode a violation ends it; in audit mode it goes on, and is recorded. */
export function isDenied({ binding, violations, refusal }: Passage): boolean {
  return (
    refusal !== undefined || (violations.length > 0 && binding?.policy.enforcement !== "audit")
  );
}

/** Resources of all actions, in words: as many as the request names. */
export function resourcesOf(passage: Passage): readonly string[] {
  const words = new Set<string>();
  for (const { resources } of actionsOf(passage))
    for (const resource of resources)
      if (resource.kind === "scoped") words.add(resource.shown ?? resource.value);
  return [...words];
}
