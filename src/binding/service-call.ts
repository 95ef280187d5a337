/**
 * What the audit chain is told of a service call: once before it leaves, once when it is over. No
 * body, no credential.
 */
import type { AuditValue } from "../audit/event.ts";
import {
  clientText,
  clientTexts,
  MAX_CLIENT_LIST,
  optionalClientText,
} from "../platform/client-text.ts";
import { actionsOf, isDenied, type Passage, resourcesOf } from "./passage.ts";

/** Type of the records. */
export const SERVICE_CALL = "SERVICE_CALL";

type Fields = Record<string, AuditValue>;

/**
 * What of a call that leaves is recorded, actions and resources each: as many keys as S3 deletes in
 * one request. What is denied, or is over, is told in short.
 */
const MOST_RECORDED = 1_000;

/** What was decided. Members by name, as in the chain. */
export function requestFields(passage: Passage): Fields {
  const { binding, violations, request, snapshot } = passage;
  const allowed = !isDenied(passage);
  const most = allowed ? MOST_RECORDED : MAX_CLIENT_LIST;
  return {
    action: one(shownActions(passage, most)),
    allowed,
    binding: binding?.name,
    call: passage.id,
    host: clientText(request.host),
    method: clientText(request.method),
    mode: binding?.policy.enforcement,
    path: shownPath(passage),
    phase: "request",
    resource: one(shownResources(passage, most)),
    rule: shownRule(passage),
    violations: violations.length > 1 ? clientTexts(violations.map(({ rule }) => rule)) : undefined,
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
    action: one(shownActions(passage)),
    binding: passage.binding?.name,
    bytes_received: end.bytesReceived,
    bytes_sent: end.bytesSent,
    call: passage.id,
    duration_ms: end.durationMs,
    flags: end.flags.length === 0 ? undefined : end.flags,
    phase: "response",
    resource: one(shownResources(passage)),
    status: end.status,
    workload: passage.snapshot.workload,
  };
}

function one(values: readonly string[]): AuditValue {
  return values.length <= 1 ? values[0] : values;
}

/** The actions, as logs and the audit trail show them. */
export function shownActions(passage: Passage, most = MAX_CLIENT_LIST): readonly string[] {
  return clientTexts(
    actionsOf(passage).map(({ action }) => action),
    most,
  );
}

/** The resources, as logs and the audit trail show them. */
export function shownResources(passage: Passage, most = MAX_CLIENT_LIST): readonly string[] {
  return clientTexts(resourcesOf(passage), most);
}

/** What stands against the request; a rule may quote the request. */
export function shownRule({ refusal, violations }: Passage): string | undefined {
  return optionalClientText(refusal?.code ?? violations[0]?.rule);
}

/**
 * The path, as logs and the audit trail show it: without its query, which may hold secrets. Services
 * that take credentials in the path say how to hide them.
 */
export function shownPath({ binding, request }: Passage): string {
  return clientText(binding?.plugin.redactPath?.(request.path) ?? request.path);
}
