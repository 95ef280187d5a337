/** The first stage: identifies the caller and the operation. */
import { identify as identifyCaller } from "../../access/identity.ts";
import type { HeaderMap } from "../../envoy/ext-proc/messages.ts";
import type { CallerPolicy } from "../../policy/snapshot.ts";
import type { VendorHeaders } from "../dialects/contract.ts";
import { dialects } from "../dialects/registry.ts";
import { refuse, Refusal } from "../../access/refusal.ts";
import type { LlmRoute } from "../request/routes.ts";
import type { RequestContext } from "./context.ts";
import type { Outcome } from "./pipeline.ts";

/** A request whose headers have arrived. */
export interface Arrival {
  readonly headers: HeaderMap;
  /** No body follows. */
  readonly endOfStream: boolean;
  /** undefined if the path is not an operation. */
  readonly route: LlmRoute | undefined;
  /** Address of the client, canonical. */
  readonly address: string;
}

export interface Identified {
  readonly route: LlmRoute;
  readonly caller: CallerPolicy;
  readonly vendorHeaders: VendorHeaders;
}

export function identify(arrival: Arrival, context: RequestContext): Outcome<Identified> {
  const { headers, route, address } = arrival;
  if (route === undefined) return refuse("not_found", "The gateway has no such path.");
  if (headers.get(":method") !== "POST") return refuse("method_not_allowed", "Use POST here.");
  const identity = identifyCaller(context.snapshot, {
    audience: route.audience,
    headers,
    query: route.query,
    address,
    now: context.admittedAt,
  });
  if (identity.kind === "refused") return new Refusal(identity.error, { policy: identity.policy });
  const malformed = checkHeaders(arrival, route);
  if (malformed !== undefined) return new Refusal(malformed.error, { policy: identity.policy });
  return {
    route,
    caller: identity.policy,
    vendorHeaders: {
      anthropicVersion: headers.get("anthropic-version"),
      anthropicBeta: headers.get("anthropic-beta"),
    },
  };
}

function checkHeaders({ headers, endOfStream }: Arrival, route: LlmRoute): Refusal | undefined {
  if (endOfStream) return refuse("invalid_request", "The request has no body.");
  const encoding = headers.get("content-encoding");
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
    return refuse("unsupported_encoding", "Send the body without content-encoding.");
  }
  const { streamParameter } = dialects[route.dialect];
  if (streamParameter !== undefined && route.stream === true) {
    const { name, value } = streamParameter;
    if (!route.query.split("&").includes(`${name}=${value}`)) {
      const message = `Streams are served as server-sent events: add ?${name}=${value}.`;
      return refuse("invalid_request", message, name);
    }
  }
  return undefined;
}
