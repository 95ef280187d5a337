/**
 * Authorizer answers Envoy: it converts Envoy's request into an arrival at the pipeline, and the
 * outcome into Envoy's reply.
 */
import { randomUUID } from "node:crypto";
import type { AuditEvent } from "../audit/event.ts";
import { CALL_HEADER } from "../envoy/config/sidecar.ts";
import type { AuthzReply, AuthzRequest } from "../envoy/ext-authz/wire.ts";
import { clientText } from "../platform/client-text.ts";
import type { Logger } from "../platform/log.ts";
import type { Denial, WordedDenial } from "../providers/contract.ts";
import type { BindingSnapshot } from "./binding.ts";
import type { BindingMetrics } from "./metrics.ts";
import { credentialTexts } from "./credential-texts.ts";
import { parameterNames } from "./parameter-names.ts";
import { decide, type DeniedCall, type ForwardedCall } from "./pipeline.ts";
import {
  actionsOf,
  bindingNames,
  type Denied,
  type ServiceArrival,
  type JudgedCall,
  resourcesOf,
} from "./verdict.ts";
import type { StepServices } from "./step-services.ts";
import { readRequest } from "./request.ts";
import { isStripped } from "./rewriting.ts";
import {
  MALFORMED,
  malformedFields,
  type MalformedRequest,
  recordType,
  responseFields,
  SERVICE_CALL,
  shownActions,
  shownPath,
  shownResources,
  shownRule,
} from "./service-call.ts";

/** Keys of the dynamic metadata that Envoy's configuration uses: see envoy/config/sidecar.ts. */
export const METADATA = {
  upstream: "upstream",
  call: "call",
  credentials: "credentials",
} as const;

export interface AuthorizerOptions extends StepServices {
  readonly snapshot: () => BindingSnapshot;
  readonly metrics: BindingMetrics;
  /** Whether forwarded requests carry {@link CALL_HEADER}, for a later filter of Envoy. */
  readonly marksCalls?: boolean;
}

/** Listener of a request: with TLS, or plain. */
export type ListenerName = "https" | "http";

/** A request that Envoy itself refused, for example a violation of HTTP, from its access log. */
export interface EnvoyRefusal {
  readonly status: number;
  readonly flags: readonly string[];
}

/** End of a call, from Envoy's access log. */
export interface EndedCall {
  readonly id: string;
  readonly status: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  readonly flags: readonly string[];
}

export class Authorizer {
  readonly #options: AuthorizerOptions;
  /**
   * For the lines that `audit.logRequests` asks for: printed unless warnings are hidden too, since
   * `svc run` shows only warnings by default.
   */
  readonly #requestLog: Logger;
  /** Forwarded calls, until Envoy's log reports their end. */
  readonly #under = new Map<string, ForwardedCall>();

  constructor(options: AuthorizerOptions) {
    this.#options = options;
    const { log } = options;
    this.#requestLog = log.child({}, { level: log.isLevelEnabled("warn") ? "info" : log.level });
  }

  get underWay(): number {
    return this.#under.size;
  }

  /** @param listener of the connection, which no client determines */
  async check(raw: AuthzRequest, listener: ListenerName): Promise<AuthzReply> {
    const read = readRequest({
      method: raw.method,
      target: raw.path,
      authority: raw.authority,
      headers: raw.headers,
      body: raw.body.length === 0 ? undefined : raw.body,
      // Envoy describes a plain connection as one without a server name, too.
      serverName: listener === "http" ? undefined : (raw.serverName ?? ""),
    });
    if (read.kind === "malformed") {
      this.#malformed({ ...raw, listener, reason: read.message });
      return denial({
        status: read.status,
        code: MALFORMED,
        message: read.message,
        details: {},
      });
    }
    const arrival: ServiceArrival = {
      id: randomUUID(),
      request: read.request,
      snapshot: this.#options.snapshot(),
      startedAt: this.#options.clock.monotonic(),
    };
    const outcome = await decide(arrival, this.#options);
    this.#options.metrics.decided(
      outcome.verdict,
      this.#options.clock.monotonic() - arrival.startedAt,
    );
    if ("injection" in outcome) return this.#forward(outcome);
    const log = this.#logOf(outcome.verdict);
    if (outcome.listed) log.info(logLine(outcome), "service call denied");
    return deny(outcome);
  }

  /** Called by Envoy's access log, after the last byte. */
  ended({ id, ...end }: EndedCall): void {
    const call = this.#under.get(id);
    if (call === undefined) return;
    this.#under.delete(id);
    const { startedAt } = call.arrival;
    const durationMs = Math.max(0, Math.round(this.#options.clock.monotonic() - startedAt));
    this.#options.metrics.ended(call.verdict, end.status, durationMs);
    this.#options.audit?.append({
      type: recordType(call.verdict),
      fields: responseFields(call, { ...end, durationMs }),
    });
  }

  /** Called by Envoy's access log: the request did not reach {@link check}. */
  refusedByEnvoy({ status, flags }: EnvoyRefusal): void {
    this.#malformed({ reason: `Envoy refused the request itself (${status}).`, flags });
  }

  /** Counts a malformed request, and records and logs it at a limited rate. */
  #malformed(refused: MalformedRequest): void {
    const { metrics, refusals, log, snapshot } = this.#options;
    metrics.malformed();
    const { workload } = snapshot();
    const fields = malformedFields(randomUUID(), workload, refused);
    const event = (): AuditEvent => ({ type: SERVICE_CALL, fields });
    if (refusals.record({ caller: workload, code: MALFORMED, event }))
      log.info(fields, "malformed request refused");
  }

  #logOf({ binding }: Denied): Logger {
    return binding?.policy.logRequests === true ? this.#requestLog : this.#options.log;
  }

  #forward(call: ForwardedCall): AuthzReply {
    const { binding, violations } = call.verdict;
    const [violation] = violations;
    if (violation !== undefined) {
      const message = `AUDIT (not blocked): ${clientText(violation.message)}`;
      this.#options.log.warn(logLine(call), message);
    } else if (binding.policy.logRequests) {
      const log = this.#requestLog;
      log.info(logLine(call), "service call");
    }
    this.#under.set(call.arrival.id, call);
    return okReply(call, this.#options.marksCalls ?? false);
  }

  /** Returns a forwarded call that has not ended. */
  callOf(id: string): ForwardedCall | undefined {
    return this.#under.get(id);
  }
}

/** Replaces the agent's credentials by the real one. */
function okReply(
  { arrival, verdict, injection, upstream }: ForwardedCall,
  marksCalls: boolean,
): AuthzReply {
  const { plugin, instance } = verdict.binding;
  // The agent may have meant its credential for another Provider of the host.
  const plugins = arrival.snapshot.bindingsOf(arrival.request.host).map((each) => each.plugin);
  const set = new Set(injection.set.map(([name]) => name));
  const own = plugins.flatMap(({ credentialHeaders }) => credentialHeaders);
  const remove = new Set([...ALWAYS_REMOVED, ...own, ...injection.remove]);
  // Lists only the credentials that are present, because Envoy walks the lists for each request.
  // Other spellings of a credential's parameter were refused: see disguised.ts.
  const { headers, query } = arrival.request;
  const names = new Set([...parameterNames(query)].map(({ raw }) => raw));
  const credentials = {
    credentialQuery: plugin.credentialQuery,
    credentialHeaders: [...plugin.credentialHeaders, ...(instance.credentialHeaders ?? [])],
  };
  return {
    kind: "ok",
    set: marksCalls ? [...injection.set, [CALL_HEADER, arrival.id]] : injection.set,
    remove: [...headers.keys()].filter(
      (name) => (remove.has(name) || isStripped(name)) && !set.has(name),
    ),
    setQuery: injection.setQuery,
    removeQuery: [...new Set(plugins.flatMap(({ credentialQuery }) => credentialQuery))].filter(
      (name) => names.has(name),
    ),
    metadata: {
      [METADATA.upstream]: upstream,
      [METADATA.call]: arrival.id,
      [METADATA.credentials]: credentialTexts(injection, credentials).join("\n"),
    },
  };
}

function deny(call: DeniedCall): AuthzReply {
  const { binding, refusal, violations } = call.verdict;
  const [violation] = violations;
  if (refusal !== undefined || violation === undefined) {
    const { status, code, message } = refusal ?? {
      status: 403,
      code: "denied",
      message: "Not allowed.",
    };
    const details = binding === undefined ? {} : { binding: binding.name };
    return denial({ status, code, message, details }, call);
  }
  const { code, rule, action, resource, allowed } = violation;
  const messages = [call.verdict, ...call.verdict.others].flatMap(
    ({ violations: [first] }) => first?.message ?? [],
  );
  const bindings = bindingNames(call.verdict);
  const details = {
    binding: binding?.name,
    ...(bindings.length > 1 && { bindings }),
    action: action ?? actionsOf(call.verdict)[0]?.action,
    resource: resource ?? resourcesOf(call.verdict)[0],
    rule,
    allowed,
  };
  return denial({ status: 403, code, message: [...new Set(messages)].join(" "), details }, call);
}

function logLine(call: JudgedCall): object {
  const { id, request, snapshot } = call.arrival;
  return {
    call: id,
    workload: snapshot.workload,
    binding: bindingNames(call.verdict).join(", ") || undefined,
    action: shownActions(call.verdict),
    resource: shownResources(call.verdict),
    method: clientText(request.method),
    host: clientText(request.host),
    path: shownPath(call),
    rule: shownRule(call.verdict),
  };
}

/** Cookies are credentials with every service, and hop-by-hop headers belong to this proxy. */
const ALWAYS_REMOVED: readonly string[] = ["cookie", "cookie2", "proxy-authorization"];

/**
 * Uses the service's own error format if its clients need it; otherwise `message` is a top-level
 * member, where most clients look for it.
 */
function denial(told: Denial, call?: DeniedCall): AuthzReply {
  const { status, code, message, details } = told;
  const worded = call === undefined ? undefined : wordedBy(call, told);
  return {
    kind: "denied",
    status: worded?.status ?? status,
    headers: [
      ...(worded?.headers ?? [["content-type", "application/json"] as const]),
      ["x-svc-denied", code],
    ],
    body: worded?.body ?? `${JSON.stringify({ code, message, ...details, source: "svc" })}\n`,
    metadata: {},
  };
}

function wordedBy({ arrival, verdict }: DeniedCall, told: Denial): WordedDenial | undefined {
  const { binding } = verdict;
  if (binding?.instance.wordDenial === undefined)
    return binding?.plugin.wordDenial?.(arrival.request, told);
  return binding.instance.wordDenial(arrival.request, told);
}
