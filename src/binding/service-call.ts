/**
 * Audit records of a service call: one before it is forwarded, one when it has ended. They contain
 * no body and no credential.
 */
import type { AuditValue } from "../audit/event.ts";
import {
  clientText,
  clientTexts,
  MAX_CLIENT_LIST,
  optionalClientText,
} from "../platform/client-text.ts";
import {
  actionsOf,
  bindingNames,
  type Findings,
  type JudgedCall,
  resourcesOf,
  type ServiceVerdict,
  toolsOf,
  violationsOf,
} from "./verdict.ts";

/** Type of the records. */
export const SERVICE_CALL = "SERVICE_CALL";

/** Type of the records of requests that call tools of an MCP server. */
export const TOOL_CALL = "TOOL_CALL";

/** Returns the type of a call's records. */
export function recordType(findings: Findings): string {
  return toolsOf(findings).length === 0 ? SERVICE_CALL : TOOL_CALL;
}

/** Returns the fields of a call of tools: none for others. */
function toolFields(findings: Findings, most?: number): Fields {
  const tools = toolsOf(findings);
  if (tools.length === 0) return {};
  return { provider: findings.binding?.name, tool: one(clientTexts(tools, most)) };
}

type Fields = Record<string, AuditValue>;

/**
 * Maximum number of recorded actions and resources of an allowed call: as many as the keys that S3
 * deletes in one request. Records of denied and ended calls have fewer.
 */
const MOST_RECORDED = 1_000;

/** Returns the fields of the decision. Members are named as in the chain. */
export function requestFields(call: JudgedCall): Fields {
  const { id, request, snapshot } = call.arrival;
  const { verdict } = call;
  const { binding } = verdict;
  const violations = violationsOf(verdict);
  const allowed = verdict.kind === "permitted";
  const most = allowed ? MOST_RECORDED : MAX_CLIENT_LIST;
  return {
    action: one(shownActions(verdict, most)),
    allowed,
    binding: one(bindingNames(verdict)),
    call: id,
    host: clientText(request.host),
    method: clientText(request.method),
    mode: binding?.policy.enforcement,
    path: shownPath(call),
    phase: "request",
    resource: one(shownResources(verdict, most)),
    rule: shownRule(verdict),
    ...toolFields(verdict, most),
    violations: violations.length > 1 ? clientTexts(violations.map(({ rule }) => rule)) : undefined,
    workload: snapshot.workload,
  };
}

/** Code of requests that are refused in every mode, because they can be read in two ways. */
export const MALFORMED = "malformed_request";

/** A refused request. Of one that Envoy itself refused, only the reason and flags are known. */
export interface MalformedRequest {
  readonly listener?: string;
  readonly method?: string;
  readonly authority?: string;
  /** A sentence, which may quote the request. */
  readonly reason: string;
  /** Envoy's response flags. */
  readonly flags?: readonly string[];
}

/**
 * Returns the fields of a malformed request. They do not contain its path, which may hold a
 * credential in a form that nothing here recognises; neither does the host hold user information.
 */
export function malformedFields(id: string, workload: string, refused: MalformedRequest): Fields {
  const { listener, method, authority, reason, flags } = refused;
  return {
    allowed: false,
    call: id,
    flags: flags?.length === 0 ? undefined : flags,
    host: optionalClientText(authority?.replace(/^.*@/s, "")),
    listener,
    method: optionalClientText(method),
    phase: "request",
    reason: clientText(reason),
    rule: MALFORMED,
    workload,
  };
}

export interface CallEnd {
  /** HTTP status; 0 if there was no response. */
  readonly status: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  readonly durationMs: number;
  /** Envoy's response flags. */
  readonly flags: readonly string[];
}

/** Returns the fields of the outcome. Members are named as in the chain. */
export function responseFields({ arrival, verdict }: JudgedCall, end: CallEnd): Fields {
  return {
    action: one(shownActions(verdict)),
    binding: verdict.binding?.name,
    bytes_received: end.bytesReceived,
    bytes_sent: end.bytesSent,
    call: arrival.id,
    duration_ms: end.durationMs,
    flags: end.flags.length === 0 ? undefined : end.flags,
    phase: "response",
    resource: one(shownResources(verdict)),
    status: end.status,
    ...toolFields(verdict),
    workload: arrival.snapshot.workload,
  };
}

/**
 * Returns the fields of the outcome of a call that was allowed, and could not be sent. `code` is
 * that of the refusal.
 */
export function notSentFields(
  { arrival, verdict }: JudgedCall,
  { status, code }: { readonly status: number; readonly code: string },
  durationMs: number,
): Fields {
  return {
    action: one(shownActions(verdict)),
    binding: verdict.binding?.name,
    call: arrival.id,
    code,
    duration_ms: durationMs,
    phase: "response",
    resource: one(shownResources(verdict)),
    sent: false,
    status,
    ...toolFields(verdict),
    workload: arrival.snapshot.workload,
  };
}

function one(values: readonly string[]): AuditValue {
  return values.length <= 1 ? values[0] : values;
}

/** Returns the actions in the form for logs and the audit trail. */
export function shownActions(findings: Findings, most = MAX_CLIENT_LIST): readonly string[] {
  return clientTexts(
    actionsOf(findings).map(({ action }) => action),
    most,
  );
}

/** Returns the resources in the form for logs and the audit trail. */
export function shownResources(findings: Findings, most = MAX_CLIENT_LIST): readonly string[] {
  return clientTexts(resourcesOf(findings), most);
}

/** Returns the violated rule, which may quote the request. */
export function shownRule(verdict: ServiceVerdict): string | undefined {
  const refusal = verdict.kind === "denied" ? verdict.refusal : undefined;
  return optionalClientText(refusal?.code ?? verdict.violations[0]?.rule);
}

/**
 * Returns the path in the form for logs and the audit trail: without its query, which may contain
 * secrets. Services that accept credentials in the path redact them.
 */
export function shownPath({ arrival: { request }, verdict: { binding } }: JudgedCall): string {
  return clientText(binding?.plugin.redactPath?.(request.path) ?? request.path);
}
