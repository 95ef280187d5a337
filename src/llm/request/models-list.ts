/** `GET /v1/models`: the models that the caller may use, in the shape of the called API. */
import type { HeaderMap } from "../../envoy/ext-proc/messages.ts";
import type { CallerPolicy, DialectName } from "../../policy/snapshot.ts";
import { dialects } from "../dialects/registry.ts";

/**
 * Returns the client's dialect: Google's clients are recognised by their path, Anthropic's by their
 * header.
 */
export function listDialect(path: string, headers: HeaderMap): DialectName {
  if (path.startsWith("/v1beta/")) return "gemini";
  return headers.has("anthropic-version") ? "anthropic" : "openai";
}

/**
 * @param one a model's name, or `""` for the list
 * @returns undefined if the caller has no such model
 */
export function listModels(caller: CallerPolicy, dialect: DialectName, one: string): unknown {
  const refs = caller.grants.map((grant) => grant.ref);
  if (one === "") return dialects[dialect].renderModels(refs);
  const resolution = caller.resolveModel(one);
  if (resolution.kind !== "granted") return undefined;
  return dialects[dialect].renderModel(
    `${resolution.grant.provider.name}/${resolution.grant.model}`,
  );
}
