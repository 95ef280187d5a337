/** Decides whether a caller may use a model: the only creator of a {@link Permit}. */
import { type ErrorCode, publicError, type PublicError } from "../access/errors.ts";
import type { CallerPolicy } from "../policy/snapshot.ts";
import type { Permit } from "./call.ts";

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

function denied(code: ErrorCode, message: string): Authorization {
  return { kind: "refused", error: publicError(code, message, "model") };
}
