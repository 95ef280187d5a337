/** From a request's headers and body to a call on its way, or a refusal. Decides; sends nothing. */
import {
  CALL_ID_HEADER,
  chainCluster,
  Cluster,
  InternalHeader,
  MAX_ATTEMPTS,
  MAX_REQUEST_BODY_BYTES,
  upstreamCluster,
} from "../compile/envoy/names.ts";
import type { HeaderChanges, HeaderMap } from "../extproc/wire/messages.ts";
import type { ClientAddress } from "../access/client-address.ts";
import type { CallerPolicy, PolicySnapshot } from "../policy/snapshot.ts";
import type { PriceBook } from "../pricing/price-book.ts";
import { authorize, identify } from "./authorize.ts";
import { booksOf } from "./budget.ts";
import { Call, type VendorHeaders } from "./call.ts";
import { demandOf, sizeOf } from "./call-size.ts";
import { BadRequestError, type DialectName, type PublicError } from "./dialects/dialect.ts";
import { publicError } from "./errors.ts";
import { readFacts } from "./facts.ts";
import { prepareAttempt, serves } from "./prepare.ts";
import { RetryPlan, type Target } from "./retry-plan.ts";
import { dialectOfPath, type LlmRoute, parseRoute } from "./routes.ts";

export interface Refusal {
  readonly kind: "refused";
  readonly error: PublicError;
  /** To be refused in. */
  readonly dialect: DialectName;
  /** Who was refused, as far as it is known. */
  readonly who: Who;
  readonly retryAfterMs?: number;
}

/** Whom a request comes from, for the record. */
export interface Who {
  readonly policy: CallerPolicy | undefined;
  readonly address: string;
  /** The model that was asked for, where that was read. */
  readonly model: string | undefined;
  /** Without its query, which may hold a key. */
  readonly path: string;
}

/** A caller that is known, before its body is read. */
export interface Caller {
  readonly kind: "caller";
  readonly route: LlmRoute;
  readonly policy: CallerPolicy;
  readonly who: Who;
  readonly vendorHeaders: VendorHeaders;
}

export interface CallerOptions {
  readonly snapshot: PolicySnapshot;
  readonly clientAddress: ClientAddress;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export function readCaller(
  headers: HeaderMap,
  endOfStream: boolean,
  { snapshot, clientAddress, now }: CallerOptions,
): Caller | Refusal {
  const path = headers.get(":path") ?? "";
  const route = parseRoute(path);
  const dialect = route?.dialect ?? dialectOfPath(path);
  const address = clientAddress(headers.get(InternalHeader.peer), headers.get("x-forwarded-for"));
  const whoIs = (policy: CallerPolicy | undefined): Who => ({
    policy,
    address,
    model: route?.model,
    path: path.split("?", 1)[0] ?? "",
  });
  let policy: CallerPolicy | undefined;
  const refuse = (error: PublicError): Refusal => ({
    kind: "refused",
    error,
    dialect,
    who: whoIs(policy),
  });

  if (route === undefined) return refuse(publicError("not_found", "The gateway has no such path."));
  if (headers.get(":method") !== "POST")
    return refuse(publicError("method_not_allowed", "Use POST here."));
  const identity = identify(snapshot, {
    surface: route.surface,
    headers,
    query: route.query,
    address,
    now,
  });
  policy = identity.policy;
  if (identity.kind === "refused") return refuse(identity.error);
  if (endOfStream) return refuse(publicError("invalid_request", "The request has no body."));
  const encoding = headers.get("content-encoding");
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
    return refuse(publicError("unsupported_encoding", "Send the body without content-encoding."));
  }
  if (
    route.dialect === "gemini" &&
    route.stream === true &&
    !/(^|&)alt=sse(&|$)/.test(route.query)
  ) {
    return refuse(
      publicError(
        "invalid_request",
        "Streams are served as server-sent events: add ?alt=sse.",
        "alt",
      ),
    );
  }
  return {
    kind: "caller",
    route,
    policy: identity.policy,
    who: whoIs(identity.policy),
    vendorHeaders: {
      anthropicVersion: headers.get("anthropic-version"),
      anthropicBeta: headers.get("anthropic-beta"),
    },
  };
}

export interface AdmissionOptions {
  readonly snapshot: PolicySnapshot;
  readonly prices: PriceBook;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Milliseconds, monotonic. */
  readonly startedAt: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly newCallId: () => string;
}

/** A call whose first attempt is ready. */
export interface Admitted {
  readonly kind: "admitted";
  readonly call: Call;
  readonly headers: HeaderChanges;
  /** undefined where the caller's own bytes go on. */
  readonly body: Buffer | undefined;
}

export function admit(caller: Caller, raw: Buffer, options: AdmissionOptions): Admitted | Refusal {
  const refuse = (error: PublicError): Refusal => ({
    kind: "refused",
    error,
    dialect: caller.route.dialect,
    who: caller.who,
  });
  if (raw.length > MAX_REQUEST_BODY_BYTES) {
    return refuse(
      publicError("body_too_large", `The request body is above ${MAX_REQUEST_BODY_BYTES} bytes.`),
    );
  }
  let body: unknown;
  try {
    body = JSON.parse(raw.toString("utf8"));
  } catch {
    return refuse(publicError("invalid_request", "The request body is not valid JSON."));
  }
  try {
    return admitParsed(caller, raw, body, options);
  } catch (error) {
    if (!(error instanceof BadRequestError)) throw error;
    return refuse(publicError(error.code, error.message, error.param));
  }
}

/** @throws BadRequestError */
function admitParsed(
  caller: Caller,
  raw: Buffer,
  body: unknown,
  options: AdmissionOptions,
): Admitted | Refusal {
  const { route, vendorHeaders } = caller;
  const facts = readFacts(route, body);
  const who = { ...caller.who, model: facts.model };
  const refuse = (error: PublicError): Refusal => ({
    kind: "refused",
    error,
    dialect: route.dialect,
    who,
  });
  const decision = authorize(caller.policy, facts.model);
  if (decision.kind === "refused") return refuse(decision.error);
  const { permit } = decision;
  const first: Target = { provider: permit.grant.provider, model: permit.grant.model };
  if (!serves(first, route, facts.stream)) {
    const { name, kind } = first.provider;
    return refuse(
      publicError("not_implemented", `The provider ${name} (${kind}) has no endpoint for this.`),
    );
  }
  const books = booksOf(caller.policy, options.snapshot);
  const size = sizeOf({
    caller: caller.policy,
    route,
    facts,
    body,
    limited: books.checks.length > 0,
  });
  if (size.kind === "too_large") return { ...refuse(size.error), retryAfterMs: 0 };
  const { outputCap } = size;
  const request = prepareAttempt(permit, first, {
    route,
    stream: facts.stream,
    raw,
    body,
    vendorHeaders,
    outputCap,
  });
  const plan = new RetryPlan(
    targets(first, caller.policy, route, facts.stream, options.snapshot),
    options.random,
    MAX_ATTEMPTS,
  );
  const call = new Call({
    id: options.newCallId(),
    route,
    permit,
    address: who.address,
    admittedAt: options.now,
    books,
    demand: size.kind === "sized" ? demandOf(size, first.model, options.prices) : undefined,
    outputCap,
    startedAt: options.startedAt,
    plan,
    vendorHeaders,
    stream: facts.stream,
    wantsUsage: facts.wantsUsage,
    original: { raw, body },
  });
  call.firstAttemptStarted = !firstAttemptIsInternal(call);
  const changed = request.body !== raw;
  return {
    kind: "admitted",
    call,
    body: changed ? request.body : undefined,
    headers: {
      set: [
        ...request.set,
        ...routing(call),
        // Envoy checks it against the body that it is given.
        ...(changed ? [["content-length", String(request.body.length)] as const] : []),
      ],
      remove: request.remove,
    },
  };
}

/** A first-byte timeout below this must be exact: see {@link firstAttemptIsInternal}. */
const EXACT_TIMEOUT_BELOW_MS = 120_000;

/**
 * Envoy has one time per attempt for the whole chain, and it also runs while an attempt waits its turn: so with
 * retries it is the longest time of the chain plus the longest wait. An attempt in the internal listener has its own,
 * exact time there. The first attempt goes straight to the provider, for speed; where a short time was set for it, it
 * goes through the internal listener too.
 */
function firstAttemptIsInternal(call: Call): boolean {
  return (
    call.plan.maxAttempts > 1 && call.target.provider.firstByteTimeoutMs < EXACT_TIMEOUT_BELOW_MS
  );
}

function routing(call: Call): (readonly [string, string])[] {
  const { plan, target } = call;
  const { provider } = target;
  const retried = plan.maxAttempts > 1;
  const cluster = firstAttemptIsInternal(call)
    ? Cluster.attempts
    : retried
      ? chainCluster(provider)
      : upstreamCluster(provider);
  return [
    [InternalHeader.cluster, cluster],
    [CALL_ID_HEADER, call.id],
    ["x-envoy-max-retries", String(plan.maxAttempts - 1)],
    [
      "x-envoy-upstream-rq-per-try-timeout-ms",
      String(retried ? plan.longestAttemptMs : provider.firstByteTimeoutMs),
    ],
  ];
}

/** The provider that was asked, then its fallbacks that exist, allow the model and have the endpoint. */
function targets(
  first: Target,
  caller: CallerPolicy,
  route: LlmRoute,
  stream: boolean,
  snapshot: PolicySnapshot,
): Target[] {
  const found = [first];
  for (const fallback of first.provider.fallbacks) {
    const provider = snapshot.providers.get(fallback.provider);
    if (provider === undefined) continue;
    // What is closed to callers outside stays closed, whoever falls back to it.
    if (caller.kind === "key" && provider.external === undefined) continue;
    const target: Target = { provider, model: fallback.model ?? first.model };
    if (provider.allowsModel(target.model) && serves(target, route, stream)) found.push(target);
  }
  return found;
}
