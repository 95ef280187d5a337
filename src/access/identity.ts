/** Identifies the caller of a request by its credential, for every audience of the gateway. */
import type { HeaderMap } from "../envoy/ext-proc/messages.ts";
import type {
  AccessKeyPolicy,
  AgentPolicy,
  CallerPolicy,
  KeyEntry,
  PolicySnapshot,
} from "../policy/snapshot.ts";
import { readCredential } from "./credentials.ts";
import { type ErrorCode, publicError, type PublicError } from "./errors.ts";
import type { Audience } from "./audience.ts";

/** IdentityRequest is what a request says about its sender. */
export interface IdentityRequest {
  readonly audience: Audience;
  readonly headers: HeaderMap;
  /** Query without `?`. */
  readonly query: string;
  /** Address of the client, canonical; see `access/client-address.ts`. */
  readonly address: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export type Identity =
  | { readonly kind: "known"; readonly policy: CallerPolicy }
  /** `policy` is set if the refused caller is known. */
  | {
      readonly kind: "refused";
      readonly error: PublicError;
      readonly policy: CallerPolicy | undefined;
    };

const KIND_OF_KEY: Readonly<Record<Audience, string>> = {
  internal: "workload token",
  external: "access key",
};

export function identify(snapshot: PolicySnapshot, request: IdentityRequest): Identity {
  const { audience } = request;
  const credential = readCredential(request.headers, request.query);
  switch (credential.kind) {
    case "none":
      return refused(
        "missing_key",
        `No API key: send the ${KIND_OF_KEY[audience]} as your client's API key.`,
      );
    case "conflict":
      return refused("missing_key", "The request carries several different API keys; send one.");
    case "key": {
      // Compared by hash, so that the duration of a lookup reveals nothing about a key.
      const agent = snapshot.agentsByTokenHash.get(credential.sha256);
      const entry = snapshot.keysByHash.get(credential.sha256);
      return audience === "external"
        ? identifyKey(snapshot, request, entry, agent)
        : identifyAgent(agent, entry);
    }
  }
}

function identifyAgent(agent: AgentPolicy | undefined, entry: KeyEntry | undefined): Identity {
  if (agent !== undefined) return { kind: "known", policy: agent };
  if (entry !== undefined)
    return refused("wrong_surface", "An access key is only valid under /ext.", entry.key);
  return refused("invalid_key", "The API key is not a workload token of this gateway.");
}

function identifyKey(
  snapshot: PolicySnapshot,
  request: IdentityRequest,
  entry: KeyEntry | undefined,
  agent: AgentPolicy | undefined,
): Identity {
  if (agent !== undefined)
    return refused("wrong_surface", "A workload token is not valid under /ext.", agent);
  if (entry === undefined)
    return refused("invalid_key", "The API key is not an access key of this gateway.");
  const error = keyError(snapshot, request, entry);
  return error === undefined
    ? { kind: "known", policy: entry.key }
    : { kind: "refused", error, policy: entry.key };
}

/** Returns the reason why a known key is refused now; undefined if it is valid. */
function keyError(
  snapshot: PolicySnapshot,
  { now, address }: IdentityRequest,
  { key, graceUntil }: KeyEntry,
): PublicError | undefined {
  if (key.revoked) return publicError("key_revoked", "The access key was revoked.");
  if (graceUntil !== undefined && graceUntil <= now) {
    return publicError(
      "key_expired",
      `The access key was rotated; the previous key expired at ${iso(graceUntil)}.`,
    );
  }
  if (key.expiresAt !== undefined && key.expiresAt <= now) {
    return publicError("key_expired", `The access key expired at ${iso(key.expiresAt)}.`);
  }
  if (!isOpen(snapshot, key)) {
    return publicError(
      "external_access_disabled",
      "The access key's provider does not allow external access (spec.externalAccess.enabled).",
    );
  }
  if (!key.allowsAddress(address)) {
    return publicError(
      "address_not_allowed",
      `The access key may not be used from the address ${address}.`,
    );
  }
  return undefined;
}

/**
 * Returns whether external access is allowed. A provider that is not in use is detected later, by
 * its models or as a server.
 */
function isOpen(snapshot: PolicySnapshot, key: AccessKeyPolicy): boolean {
  if (key.mcp !== undefined) return snapshot.closedMcpServers.get(key.mcp.server) !== "disabled";
  const provider = snapshot.providers.get(key.providerKey);
  return provider === undefined || provider.external !== undefined;
}

function iso(time: number): string {
  return new Date(time).toISOString();
}

function refused(code: ErrorCode, message: string, policy?: CallerPolicy): Identity {
  return { kind: "refused", error: publicError(code, message), policy };
}
