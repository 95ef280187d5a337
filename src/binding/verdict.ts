/** The verdict on a request at the sidecar: a permit, or a denial. */
import type { ActionResolution, ResolvedAction, ServiceRequest } from "../providers/contract.ts";
import type { Binding, BindingSnapshot } from "./binding.ts";

/** A request at the sidecar. */
export interface ServiceArrival {
  readonly id: string;
  readonly request: ServiceRequest;
  readonly snapshot: BindingSnapshot;
  /** Milliseconds, monotonic. */
  readonly startedAt: number;
}

/** A violation of a policy by a request. */
export interface Violation {
  readonly code:
    | "http_rule"
    | "unresolved_action"
    | "action_denied"
    | "out_of_scope"
    | "tool_not_allowed";
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
export interface ServiceRefusal {
  readonly status: 400 | 403 | 421 | 502 | 503;
  readonly code: string;
  readonly message: string;
}

/** Results of the checks of a request. */
export interface Findings {
  /** undefined if the request's host is not bound. */
  readonly binding: Binding | undefined;
  /** undefined if the actions were not asked for. */
  readonly resolution: ActionResolution | undefined;
  /** The first one is decisive; there are more only in audit mode. */
  readonly violations: readonly Violation[];
}

export interface Denied extends Findings {
  readonly kind: "denied";
  /** undefined if the first violation denies the request. */
  readonly refusal: ServiceRefusal | undefined;
  /** Denials by the other bindings of the host, in their order. */
  readonly others: readonly Denied[];
}

/**
 * Proof that a request may be forwarded with the credential of a binding. Only `judge.ts` creates
 * one, and the functions that inject a credential require one. Its violations are those of the
 * audit mode, which are recorded and do not deny.
 */
export interface ServicePermit extends Findings {
  readonly kind: "permitted";
  readonly binding: Binding;
  readonly [permitBrand]: true;
}

declare const permitBrand: unique symbol;

export type ServiceVerdict = Denied | ServicePermit;

/** A request and its verdict, for the log, the metrics and the audit. */
export interface JudgedCall {
  readonly arrival: ServiceArrival;
  readonly verdict: ServiceVerdict;
}

/** Returns the names of the bindings that gave a verdict. */
export function bindingNames(verdict: ServiceVerdict): readonly string[] {
  const others = verdict.kind === "denied" ? verdict.others : [];
  return [verdict, ...others].flatMap(({ binding }) => binding?.name ?? []);
}

/** Returns the violations of all bindings that gave a verdict. */
export function violationsOf(verdict: ServiceVerdict): readonly Violation[] {
  const others = verdict.kind === "denied" ? verdict.others : [];
  return verdict.violations.concat(...others.map(({ violations }) => violations));
}

/** Returns the resolved actions; none if they could not be resolved. */
export function actionsOf({ resolution }: Findings): readonly ResolvedAction[] {
  return resolution?.kind === "resolved" ? resolution.actions : [];
}

/** Returns the resources of all actions as text: as many as the request names. */
export function resourcesOf(findings: Findings): readonly string[] {
  const words = new Set<string>();
  for (const { resources, item } of actionsOf(findings)) {
    if (item !== undefined) words.add(item.name);
    for (const resource of resources)
      if (resource.kind === "scoped") words.add(resource.shown ?? resource.value);
  }
  return [...words];
}

/** Returns the names of the tools of an MCP server that a request calls. */
export function toolsOf(findings: Findings): readonly string[] {
  return actionsOf(findings).flatMap(({ item }) => (item?.kind === "tools" ? [item.name] : []));
}
