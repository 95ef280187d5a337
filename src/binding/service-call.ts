/** What the audit chain is told of a service call: once before it leaves, once when it is over. No body, no credential. */
import type { AuditValue } from "../audit/event.ts";
import { actionsOf, isDenied, type Passage, resourcesOf } from "./passage.ts";

type Fields = Record<string, AuditValue>;

/** What was decided. Members by name, as in the chain. */
export function requestFields(passage: Passage): Fields {
  const { binding, violations, refusal, request, snapshot } = passage;
  const [violation] = violations;
  return {
    action: actionOf(passage),
    allowed: !isDenied(passage),
    binding: binding?.name,
    call: passage.id,
    host: request.host,
    method: request.method,
    mode: binding?.policy.enforcement,
    path: shownPath(passage),
    phase: "request",
    resource: one(resourcesOf(passage)),
    rule: refusal?.code ?? violation?.rule,
    violations: violations.length > 1 ? violations.map(({ rule }) => rule) : undefined,
    workload: snapshot.workload,
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

/** What became of it. Members by name, as in the chain. */
export function responseFields(passage: Passage, end: CallEnd): Fields {
  return {
    action: actionOf(passage),
    binding: passage.binding?.name,
    bytes_received: end.bytesReceived,
    bytes_sent: end.bytesSent,
    call: passage.id,
    duration_ms: end.durationMs,
    flags: end.flags.length === 0 ? undefined : end.flags,
    phase: "response",
    resource: one(resourcesOf(passage)),
    status: end.status,
    workload: passage.snapshot.workload,
  };
}

function actionOf(passage: Passage): AuditValue {
  return one(actionsOf(passage).map(({ action }) => action));
}

function one(values: readonly string[]): AuditValue {
  return values.length <= 1 ? values[0] : values;
}

/** Without its query, which may hold secrets; services that take credentials in the path say how to hide them. */
export function shownPath({ binding, request }: Passage): string {
  return binding?.plugin.redactPath?.(request.path) ?? request.path;
}
