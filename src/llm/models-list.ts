/** `GET /v1/models`: the models that the caller may use, in the shape of the called API. */
import type { HeaderMap } from "../envoy/ext-proc/messages.ts";
import type { CallerPolicy, DialectName } from "../policy/snapshot.ts";

/** Release dates are not stored: a constant, so that answers are stable. */
const CREATED = 1_700_000_000;

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
  const render = { openai, anthropic, gemini }[dialect];
  if (one === "") return render.list(refs);
  const resolution = caller.resolveModel(one);
  if (resolution.kind !== "granted") return undefined;
  return render.model(`${resolution.grant.provider.name}/${resolution.grant.model}`);
}

interface Shape {
  model(ref: string): object;
  list(refs: readonly string[]): object;
}

const openai: Shape = {
  model: (ref) => ({ id: ref, object: "model", created: CREATED, owned_by: ref.split("/")[0] }),
  list: (refs) => ({ object: "list", data: refs.map((ref) => openai.model(ref)) }),
};

const anthropic: Shape = {
  model: (ref) => ({
    type: "model",
    id: ref,
    display_name: ref,
    created_at: new Date(CREATED * 1000).toISOString(),
  }),
  list: (refs) => ({
    data: refs.map((ref) => anthropic.model(ref)),
    has_more: false,
    first_id: refs[0] ?? null,
    last_id: refs.at(-1) ?? null,
  }),
};

const gemini: Shape = {
  model: (ref) => ({
    name: `models/${ref}`,
    displayName: ref,
    supportedGenerationMethods: ["generateContent", "streamGenerateContent"],
  }),
  list: (refs) => ({ models: refs.map((ref) => gemini.model(ref)) }),
};
