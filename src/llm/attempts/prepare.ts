/**
 * Prepares one attempt's request: headers, path and body for one provider, from the caller's
 * original.
 */
import { InternalHeader, relayedCluster } from "../../envoy/config/names.ts";
import { CREDENTIAL_HEADERS } from "../../access/credentials.ts";
import type { Permit } from "../call.ts";
import { type Changes, UNCHANGED } from "../dialects/changes.ts";
import { BadRequestError } from "../dialects/dialect.ts";
import type { VendorHeaders } from "../dialects/contract.ts";
import { passRequest } from "../dialects/pass-request.ts";
import { dialects, translateRequest } from "../dialects/registry.ts";
import type { JsonBody } from "../request/json-body.ts";
import type { AttemptTarget } from "./retry-plan.ts";
import type { LlmRoute } from "../request/routes.ts";
import { upstreamAddress, upstreamKey } from "./upstreams.ts";

/**
 * Headers that belong to one attempt: each attempt sets its own, and removes the others. The routes
 * remove headers that no upstream may see.
 */
const ATTEMPT_HEADERS: readonly string[] = [
  ...CREDENTIAL_HEADERS,
  "anthropic-version",
  "anthropic-beta",
];

export interface AttemptRequest {
  readonly set: readonly (readonly [name: string, value: string])[];
  readonly remove: readonly string[];
  /** Body in pieces; undefined if the caller's own bytes are forwarded. */
  readonly body: readonly Buffer[] | undefined;
  /** Changes that the provider's dialect required. */
  readonly changes: Changes;
}

export interface AttemptSource {
  readonly route: LlmRoute;
  readonly stream: boolean;
  readonly body: JsonBody;
  readonly vendorHeaders: VendorHeaders;
  /** Maximum output tokens to request if the body contains none; undefined for no limit. */
  readonly outputCap: number | undefined;
}

/**
 * Prepares the request of one attempt, with the provider's key.
 *
 * @param permit proof that the caller may use the model
 * @param target one of the permit's targets
 * @throws BadRequestError if this provider's dialect cannot express the request
 */
export function prepareAttempt(
  permit: Permit,
  target: AttemptTarget,
  source: AttemptSource,
): AttemptRequest {
  if (!permit.targets.includes(target)) {
    throw new Error(`the permit does not allow ${target.provider.key}`);
  }
  const { provider, model } = target;
  const address = upstreamAddress(provider, source.route.operation, model, source.stream);
  if (address === undefined)
    throw new BadRequestError(
      `${provider.name} has no such endpoint`,
      undefined,
      "unsupported_by_upstream",
    );
  const set: (readonly [string, string])[] = [
    [":path", address.path],
    [":authority", address.authority],
    ["content-type", "application/json"],
  ];
  if (provider.readsToEnd) set.push([InternalHeader.relay, relayedCluster(provider)]);
  const key = upstreamKey(provider);
  if (key !== undefined) set.push(key);
  const native = source.route.dialect === provider.dialect ? source.vendorHeaders : undefined;
  set.push(...(dialects[provider.dialect].upstreamHeaders?.(native) ?? []));
  const own = new Set(set.map(([name]) => name));
  return {
    set,
    remove: ATTEMPT_HEADERS.filter((name) => !own.has(name)),
    ...attemptBody(target, source),
  };
}

function attemptBody(
  target: AttemptTarget,
  source: AttemptSource,
): Pick<AttemptRequest, "body" | "changes"> {
  const { route, body, stream, outputCap } = source;
  const { operation } = route;
  const { kind } = target.provider;
  const from = route.dialect;
  const to = target.provider.dialect;
  if (from !== to) {
    const { model, provider } = target;
    const mode = provider.translation;
    const request = { from, to, body: body.value, model, stream, mode, outputCap };
    const translated = translateRequest(request);
    return { body: [translated.body], changes: translated.changes };
  }
  const passed = passRequest(dialects[from], body, {
    model: target.model,
    // A completion's options are for chat completions only.
    stream: stream && route.operation === "chat",
    outputCap:
      outputCap === undefined
        ? undefined
        : { field: dialects[to].outputLimitField({ operation, kind }), tokens: outputCap },
  });
  return { body: passed, changes: UNCHANGED };
}
