/** What the audit chain is told of a service call: once before it leaves, once when it is over. No body, no credential. */
import type { AuditValue } from "../audit/event.ts";
import { actionsOf, isDenied, type Passage, resourcesOf } from "./passage.ts";

type Fields = Record<string, AuditValue>;

/** What was decided. */
export function requestFields(passage: Passage): Fields {
  const { binding, violations, refusal } = passage;
  const [violation] = violations;
  return {
    ...identityFields(passage),
    phase: "request",
    allowed: !isDenied(passage),
    mode: binding?.policy.enforcement,
    rule: refusal?.code ?? violation?.rule,
    violations: violations.length > 1 ? violations.map(({ rule }) => rule) : undefined,
    host: passage.request.host,
    method: passage.request.method,
    path: shownPath(passage),
  };
}

export interface CallEnd {
  /** 0 where no answer came. */
  readonly status: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  readonly durationMs: number;
  /** Envoy's response flags. */
  readonly flags: readonly string[];
}

/** What became of it. */
export function responseFields(passage: Passage, end: CallEnd): Fields {
  return {
    ...identityFields(passage),
    phase: "response",
    status: end.status,
    bytes_sent: end.bytesSent,
    bytes_received: end.bytesReceived,
    duration_ms: end.durationMs,
    flags: end.flags.length === 0 ? undefined : end.flags,
  };
}

function identityFields(passage: Passage): Fields {
  const actions = actionsOf(passage).map(({ action }) => action);
  const resources = resourcesOf(passage);
  return {
    call: passage.id,
    workload: passage.snapshot.workload,
    binding: passage.binding?.name,
    action: one(actions),
    resource: one(resources),
  };
}

function one(values: readonly string[]): AuditValue {
  return values.length <= 1 ? values[0] : values;
}

/** Without its query, which may hold secrets; services that take credentials in the path say how to hide them. */
export function shownPath({ binding, request }: Passage): string {
  return binding?.plugin.redactPath?.(request.path) ?? request.path;
}
