/** Who calls, and may they use this model: the only maker of a {@link Permit}. */
import { readCredential } from "../access/credentials.ts";
import type { HeaderMap } from "../extproc/wire/messages.ts";
import type { AgentPolicy, PolicySnapshot } from "../policy/snapshot.ts";
import type { Permit } from "./call.ts";
import type { PublicError } from "./dialects/dialect.ts";
import { publicError } from "./errors.ts";

export type Identity =
  | { readonly kind: "agent"; readonly agent: AgentPolicy }
  | { readonly kind: "refused"; readonly error: PublicError };

export function identify(snapshot: PolicySnapshot, headers: HeaderMap, query: string): Identity {
  const credential = readCredential(headers, query);
  switch (credential.kind) {
    case "none":
      return refused("missing_key", "No API key: send the workload token as your client sends its API key.");
    case "conflict":
      return refused("missing_key", "The request carries several different API keys; send one.");
    case "key": {
      const agent = snapshot.agentsByTokenHash.get(credential.sha256);
      return agent === undefined
        ? refused("invalid_key", "The API key is not a workload token of this gateway.")
        : { kind: "agent", agent };
    }
  }
}

export type Authorization =
  | { readonly kind: "permit"; readonly permit: Permit }
  | { readonly kind: "refused"; readonly error: PublicError };

export function authorize(agent: AgentPolicy, model: string): Authorization {
  const resolution = agent.resolveModel(model);
  switch (resolution.kind) {
    case "granted":
      return { kind: "permit", permit: { agent, grant: resolution.grant } as Permit };
    case "ambiguous":
      return refused(
        "ambiguous_model",
        `The model ${quote(model)} is served by several providers: write one of ${resolution.candidates.join(", ")}.`,
        "model",
      );
    case "unknown":
      return refused("model_not_found", `There is no model ${quote(model)} here. GET /v1/models lists yours.`, "model");
    case "denied":
      return refused("model_not_allowed", `The model ${quote(model)} is not allowed: ${resolution.reason}.`, "model");
  }
}

/** What a client sent, short enough to be shown back to it. */
function quote(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
}

function refused(
  code: Parameters<typeof publicError>[0],
  message: string,
  param?: string,
): { readonly kind: "refused"; readonly error: PublicError } {
  return { kind: "refused", error: publicError(code, message, param) };
}
