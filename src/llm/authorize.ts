/** Authenticates the caller and authorizes the model: the only creator of a {@link Permit}. */
import { readCredential } from "../access/credentials.ts";
import type { HeaderMap } from "../extproc/wire/messages.ts";
import type {
  AccessKeyPolicy,
  AgentPolicy,
  CallerPolicy,
  KeyEntry,
  PolicySnapshot,
} from "../policy/snapshot.ts";
import type { Permit } from "./call.ts";
import type { PublicError } from "./dialects/dialect.ts";
import { type ErrorCode, publicError } from "./errors.ts";
import type { Surface } from "./routes.ts";

/** The parts of a request that identify its sender. */
export interface Claim {
  readonly surface: Surface;
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

const KIND_OF_KEY: Readonly<Record<Surface, string>> = {
  internal: "workload token",
  external: "access key",
};

export function identify(snapshot: PolicySnapshot, claim: Claim): Identity {
  const { surface } = claim;
  const credential = readCredential(claim.headers, claim.query);
  switch (credential.kind) {
    case "none":
      return refused(
        "missing_key",
        `No API key: send the ${KIND_OF_KEY[surface]} as your client's API key.`,
      );
    case "conflict":
      return refused("missing_key", "The request carries several different API keys; send one.");
    case "key": {
      // Compared by hash, so that the duration of a lookup reveals nothing about a key.
      const agent = snapshot.agentsByTokenHash.get(credential.sha256);
      const entry = snapshot.keysByHash.get(credential.sha256);
      return surface === "external"
        ? identifyKey(snapshot, claim, entry, agent)
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
  claim: Claim,
  entry: KeyEntry | undefined,
  agent: AgentPolicy | undefined,
): Identity {
  if (agent !== undefined)
    return refused("wrong_surface", "A workload token is not valid under /ext.", agent);
  if (entry === undefined)
    return refused("invalid_key", "The API key is not an access key of this gateway.");
  const error = keyError(snapshot, claim, entry);
  return error === undefined
    ? { kind: "known", policy: entry.key }
    : { kind: "refused", error, policy: entry.key };
}

/** Returns the reason why a known key is refused now; undefined if it is valid. */
function keyError(
  snapshot: PolicySnapshot,
  { now, address }: Claim,
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
 * its models.
 */
function isOpen(snapshot: PolicySnapshot, key: AccessKeyPolicy): boolean {
  const provider = snapshot.providers.get(key.providerKey);
  return provider === undefined || provider.external !== undefined;
}

export type Authorization =
  | { readonly kind: "permit"; readonly permit: Permit }
  | { readonly kind: "refused"; readonly error: PublicError };

export function authorize(caller: CallerPolicy, model: string): Authorization {
  const resolution = caller.resolveModel(model);
  switch (resolution.kind) {
    case "granted":
      return { kind: "permit", permit: { caller, grant: resolution.grant } as Permit };
    case "ambiguous":
      return denied(
        "ambiguous_model",
        `The model ${quote(model)} is served by several providers: write one of ${resolution.candidates.join(", ")}.`,
      );
    case "unknown":
      return denied(
        "model_not_found",
        `There is no model ${quote(model)} here. GET ${listPath(caller)} lists yours.`,
      );
    case "denied":
      return denied(
        "model_not_allowed",
        `The model ${quote(model)} is not allowed: ${resolution.reason}.`,
      );
  }
}

function listPath(caller: CallerPolicy): string {
  return caller.kind === "agent" ? "/v1/models" : "/ext/v1/models";
}

/** Returns a client's text, short enough to be echoed to it. */
function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
}

function iso(time: number): string {
  return new Date(time).toISOString();
}

function refused(code: ErrorCode, message: string, policy?: CallerPolicy): Identity {
  return { kind: "refused", error: publicError(code, message), policy };
}

function denied(code: ErrorCode, message: string): Authorization {
  return { kind: "refused", error: publicError(code, message, "model") };
}
