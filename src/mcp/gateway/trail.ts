/**
 * Audit records of the MCP gateway: TOOL_CALL for each call of a tool, also for a denied one, and
 * MCP_REFUSED for other refusals. They contain no result and no key, and arguments
 * only if the Provider asks for them, redacted.
 */
import { callerFields, callerName } from "../../access/caller.ts";
import { refusalEvent, type RefusedRequest } from "../../access/refusal.ts";
import type { AuditEvent, AuditValue } from "../../audit/event.ts";
import type { RefusalLog } from "../../audit/refusals/refusals.ts";
import type { AuditSink } from "../../audit/sink.ts";
import { redact } from "../../platform/redaction/redact.ts";
import { clientText, optionalClientText } from "../../platform/client-text.ts";
import type { AccessKeyPolicy } from "../../policy/snapshot.ts";

/** Type of the records of calls of tools. */
export const TOOL_CALL = "TOOL_CALL";

/** Maximum length of recorded arguments. */
const MAX_ARGUMENTS = 4_096;

/**
 * Returns the arguments of a call for its record: as JSON, without secrets, cut to 4,096
 * characters.
 */
export function recordedArguments(params: Readonly<Record<string, unknown>>): string {
  const text = redact(JSON.stringify(params["arguments"] ?? {}));
  return text.length <= MAX_ARGUMENTS ? text : `${text.slice(0, MAX_ARGUMENTS)}\u2026`;
}

/** Type of the records of refusals that are no call of a tool. */
export const MCP_REFUSED = "MCP_REFUSED";

/** A call of a tool: the fields of its record. */
export interface ToolCall {
  readonly caller: AccessKeyPolicy;
  readonly callId: string;
  readonly address: string;
  /** Name of the Provider. */
  readonly provider: string;
  readonly tool: string;
  /** The arguments as {@link recordedArguments} writes them; undefined if they are not recorded. */
  readonly arguments: string | undefined;
  /** Whether the policy allows it. */
  readonly allowed: boolean;
  /** `audit` if it was forwarded although the policy does not allow it. */
  readonly enforcement: "enforce" | "audit";
  /** Status of the answer; undefined if there was none. */
  readonly status: number | undefined;
  /** One of our error codes; undefined if the server answered. */
  readonly code: string | undefined;
  /** `complete`, or why the answer is not. */
  readonly end: "complete" | "refused" | "interrupted";
  readonly durationMs: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
}

export interface McpTrailOptions {
  readonly sink: AuditSink;
  /** Summarises refusals and denied calls, since they cost their sender nothing. */
  readonly refusals: RefusalLog;
}

export class McpTrail {
  readonly #options: McpTrailOptions | undefined;

  /** @param options undefined if nothing is recorded (`--no-audit`) */
  constructor(options: McpTrailOptions | undefined) {
    this.#options = options;
  }

  /** While true, no new calls may begin, because they could not be recorded. */
  get refusing(): boolean {
    return this.#options?.sink.refusing ?? false;
  }

  /**
   * Records calls that were forwarded.
   * @param recorded called once all records are on the disk, or one of them cannot be
   */
  record(calls: readonly ToolCall[], recorded: (ok: boolean) => void): void {
    if (this.#options === undefined || calls.length === 0) return recorded(true);
    let waiting = calls.length;
    let ok = true;
    for (const call of calls) {
      this.#options.sink.append({ type: TOOL_CALL, fields: toolFields(call) }, (fate) => {
        ok &&= fate !== "failed";
        waiting -= 1;
        if (waiting === 0) recorded(ok);
      });
    }
  }

  /** Records a denied call. Nobody waits for the record. */
  denied(call: ToolCall): void {
    this.#options?.refusals.record({
      caller: callerName(call.caller),
      code: call.code ?? "",
      event: (): AuditEvent => ({ type: TOOL_CALL, fields: toolFields(call) }),
    });
  }

  /** Records another refusal. Nobody waits for the record. */
  refused(request: RefusedRequest): void {
    this.#options?.refusals.record({
      caller: callerName(request.origin.policy),
      code: request.error.code,
      event: () => refusalEvent(MCP_REFUSED, request),
    });
  }
}

/** Members are sorted by name: see audit/chain/record.ts. */
function toolFields(call: ToolCall): Record<string, AuditValue> {
  const { access_key, source, workload } = callerFields(call.caller);
  return {
    access_key,
    allowed: call.allowed,
    arguments: call.arguments,
    call: call.callId,
    client_ip: call.address,
    code: optionalClientText(call.code),
    duration_ms: call.durationMs,
    end: call.end,
    enforcement: call.enforcement,
    provider: call.provider,
    request_bytes: call.requestBytes,
    response_bytes: call.responseBytes,
    source,
    status: call.status,
    tool: clientText(call.tool),
    workload,
  };
}
