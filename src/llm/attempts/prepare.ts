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
import { passToGemini, translateEmbeddings } from "../dialects/embeddings/translate.ts";
import { passRequest } from "../dialects/pass-request.ts";
import { dialects, translateRequest } from "../dialects/registry.ts";
import type { JsonBody } from "../request/json-body.ts";
import type { AttemptTarget } from "./retry-plan.ts";
import { isEmbedding, type LlmRoute } from "../request/routes.ts";
import { upstreamAddress, upstreamKey, type Delivery, deliveryOf } from "./upstreams.ts";

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
  const delivery = deliveryOf(provider, source.route);
  const address = delivery && upstreamAddress(provider, delivery.operation, model, source.stream);
  if (delivery === undefined || address === undefined)
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
  const native = delivery.kind === "pass" ? source.vendorHeaders : undefined;
  set.push(...(dialects[delivery.dialect].upstreamHeaders?.(native) ?? []));
  const own = new Set(set.map(([name]) => name));
  return {
    set,
    remove: ATTEMPT_HEADERS.filter((name) => !own.has(name)),
    ...attemptBody(delivery, target, source),
  };
}

function attemptBody(
  delivery: Delivery,
  { provider, model }: AttemptTarget,
  { route, body, stream, outputCap }: AttemptSource,
): Pick<AttemptRequest, "body" | "changes"> {
  const single = route.operation === "embed_content";
  if (delivery.kind === "translate") {
    const { dialect: to } = delivery;
    const mode = provider.translation;
    const request = { from: route.dialect, to, body: body.value, model, mode };
    const translated = isEmbedding(route.operation)
      ? translateEmbeddings({ ...request, single })
      : translateRequest({ ...request, stream, outputCap });
    return { body: [translated.body], changes: translated.changes };
  }
  if (isEmbedding(route.operation) && delivery.dialect === "gemini")
    return { body: [passToGemini(body.value, model, single)], changes: UNCHANGED };
  const dialect = dialects[delivery.dialect];
  const passed = passRequest(dialect, body, {
    model,
    // A completion's options are for chat completions only.
    stream: stream && route.operation === "chat",
    outputCap:
      outputCap === undefined
        ? undefined
        : { field: dialect.outputLimitField(provider.kind), tokens: outputCap },
  });
  return { body: passed, changes: UNCHANGED };
}
