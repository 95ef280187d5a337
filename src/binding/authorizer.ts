/**
 * Answers Envoy: converts its request into a passage through the steps, and the result into Envoy's
 * answer.
 */
import { randomUUID } from "node:crypto";
import type { AuthzReply, AuthzRequest } from "../envoy/ext-authz/wire.ts";
import { clientText } from "../platform/client-text.ts";
import type { Denial } from "../providers/contract.ts";
import type { BindingSnapshot } from "./binding.ts";
import type { BindingMetrics } from "./metrics.ts";
import { credentialTexts } from "./credential-texts.ts";
import { parameterNames } from "./parameter-names.ts";
import { actionsOf, isDenied, type Passage, resourcesOf } from "./passage.ts";
import { judge } from "./pipeline.ts";
import type { StepServices } from "./step-services.ts";
import { readRequest } from "./request.ts";
import { isStripped } from "./rewriting.ts";
import {
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
  /** Forwarded calls, until Envoy's log reports their end. */
  readonly #under = new Map<string, Passage>();

  constructor(options: AuthorizerOptions) {
    this.#options = options;
  }

  get underWay(): number {
    return this.#under.size;
  }

  async check(raw: AuthzRequest): Promise<AuthzReply> {
    const read = readRequest({
      method: raw.method,
      target: raw.path,
      authority: raw.authority,
      scheme: raw.serverName === undefined ? "http" : "https",
      headers: raw.headers,
      body: raw.body.length === 0 ? undefined : raw.body,
      serverName: raw.serverName,
    });
    if (read.kind === "malformed") {
      this.#options.metrics.malformed();
      return denial({
        status: read.status,
        code: "malformed_request",
        message: read.message,
        details: {},
      });
    }
    const passage = await judge(
      randomUUID(),
      read.request,
      this.#options.snapshot(),
      this.#options,
    );
    this.#account(passage);
    if (isDenied(passage)) return this.#deny(passage);
    this.#under.set(passage.id, passage);
    return this.#permit(passage);
  }

  /** Called by Envoy's access log, after the last byte. */
  ended({ id, ...end }: EndedCall): void {
    const passage = this.#under.get(id);
    if (passage === undefined) return;
    this.#under.delete(id);
    const durationMs = Math.max(0, Math.round(this.#options.clock.monotonic() - passage.startedAt));
    this.#options.metrics.ended(passage, end.status, durationMs);
    this.#options.audit?.append({
      type: SERVICE_CALL,
      fields: responseFields(passage, { ...end, durationMs }),
    });
  }

  #account(passage: Passage): void {
    const { clock, log, metrics } = this.#options;
    const { binding, violations } = passage;
    metrics.decided(passage, clock.monotonic() - passage.startedAt);
    const [violation] = violations;
    if (violation !== undefined && !isDenied(passage))
      log.warn(logLine(passage), `AUDIT (not blocked): ${clientText(violation.message)}`);
    else if (isDenied(passage)) {
      if (passage.listed) log.info(logLine(passage), "service call denied");
    } else if (binding?.policy.logRequests === true) log.info(logLine(passage), "service call");
  }

  #permit(passage: Passage): AuthzReply {
    const { binding, injection, upstream } = passage;
    if (binding === undefined || injection === undefined || upstream === undefined)
      throw new Error("a permit lacks some of its steps");
    const { credentialHeaders, credentialQuery } = binding.plugin;
    const set = new Set(injection.set.map(([name]) => name));
    const remove = new Set([...ALWAYS_REMOVED, ...credentialHeaders, ...injection.remove]);
    // Lists only the credentials that are present, because Envoy walks the lists for each request.
    // Other spellings of a credential's parameter were refused: see disguised.ts.
    const { headers, query } = passage.request;
    const names = new Set([...parameterNames(query)].map(({ raw }) => raw));
    return {
      kind: "ok",
      set: injection.set,
      remove: [...headers.keys()].filter(
        (name) => (remove.has(name) || isStripped(name)) && !set.has(name),
      ),
      setQuery: injection.setQuery,
      removeQuery: credentialQuery.filter((name) => names.has(name)),
      metadata: {
        [METADATA.upstream]: upstream,
        [METADATA.call]: passage.id,
        [METADATA.credentials]: credentialTexts(injection, binding.plugin).join("\n"),
      },
    };
  }

  #deny(passage: Passage): AuthzReply {
    const { binding, refusal, violations } = passage;
    const [violation] = violations;
    if (refusal !== undefined || violation === undefined) {
      const { status, code, message } = refusal ?? {
        status: 403,
        code: "denied",
        message: "Not allowed.",
      };
      return denial(
        { status, code, message, details: binding === undefined ? {} : { binding: binding.name } },
        passage,
      );
    }
    const { code, message, rule, action, resource, allowed } = violation;
    const details = {
      binding: binding?.name,
      action: action ?? actionsOf(passage)[0]?.action,
      resource: resource ?? resourcesOf(passage)[0],
      rule,
      allowed,
    };
    return denial({ status: 403, code, message, details }, passage);
  }
}

function logLine(passage: Passage): object {
  const { id, binding, request, snapshot } = passage;
  return {
    call: id,
    workload: snapshot.workload,
    binding: binding?.name,
    action: shownActions(passage),
    resource: shownResources(passage),
    method: clientText(request.method),
    host: clientText(request.host),
    path: shownPath(passage),
    rule: shownRule(passage),
  };
}

/** Cookies are credentials with every service, and hop-by-hop headers belong to this proxy. */
const ALWAYS_REMOVED: readonly string[] = ["cookie", "cookie2", "proxy-authorization"];

/**
 * Uses the service's own error format if its clients need it; otherwise `message` is a top-level
 * member, where most clients look for it.
 */
function denial(told: Denial, passage?: Passage): AuthzReply {
  const { status, code, message, details } = told;
  const worded = passage?.binding?.plugin.wordDenial?.(passage.request, told);
  return {
    kind: "denied",
    status,
    headers: [
      ...(worded?.headers ?? [["content-type", "application/json"] as const]),
      ["x-svc-denied", code],
    ],
    body: worded?.body ?? `${JSON.stringify({ code, message, ...details, source: "svc" })}\n`,
    metadata: {},
  };
}
