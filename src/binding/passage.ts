/** A request on its way through the steps, with the results of each step so far. */
import type {
  ActionResolution,
  Injection,
  ResolvedAction,
  ServiceRequest,
} from "../providers/contract.ts";
import type { Binding, BindingSnapshot } from "./binding.ts";

/** A violation of a policy by a request. */
export interface Violation {
  readonly code: "http_rule" | "unresolved_action" | "action_denied" | "out_of_scope";
  /** The violated part of the spec. */
  readonly rule: string;
  /** A sentence for the agent. */
  readonly message: string;
  readonly action?: string;
  readonly resource?: string;
  /** The allowed values, as in the spec. */
  readonly allowed?: readonly string[];
}

/** Reason why a request is refused in every mode. */
export interface PassageRefusal {
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
  /** The first one is decisive; there are more only in audit mode. */
  readonly violations: Violation[];
  refusal: PassageRefusal | undefined;
  injection: Injection | undefined;
  /** Address of the endpoint: `192.0.2.1:443`. */
  upstream: string | undefined;
  /** Whether the request has a record of its own, and a log line. */
  listed: boolean;
}

/** Returns the resolved actions; none if they could not be resolved. */
export function actionsOf({ resolution }: Passage): readonly ResolvedAction[] {
  return resolution?.kind === "resolved" ? resolution.actions : [];
}

/**
 * Returns whether the request is denied. In enforce mode a violation denies it; in audit mode it is
 * forwarded, and the violation is recorded.
 */
export function isDenied({ binding, violations, refusal }: Passage): boolean {
  return (
    refusal !== undefined || (violations.length > 0 && binding?.policy.enforcement !== "audit")
  );
}

/** Returns the resources of all actions as text: as many as the request names. */
export function resourcesOf(passage: Passage): readonly string[] {
  const words = new Set<string>();
  for (const { resources } of actionsOf(passage))
    for (const resource of resources)
      if (resource.kind === "scoped") words.add(resource.shown ?? resource.value);
  return [...words];
}
