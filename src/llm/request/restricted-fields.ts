/**
 * Fields of a request's body that callers must not choose: they name another model, an address or a
 * key, or request a feature whose cost the answer does not report. The gateway forwards bodies of
 * the provider's own dialect unchanged, so such a field would reach the provider and bypass the
 * model lists, the credentials and the budgets.
 *
 * Names are compared normalized (case, `_` and `-` do not matter), as tolerant servers read them.
 * Sources: the request types of the official SDKs (openai, anthropic, google-genai); the API pages
 * of OpenRouter, LiteLLM, Azure OpenAI ("On your data"), vLLM, xAI, Groq and Perplexity for the
 * fields that their servers read in addition to OpenAI's.
 */
import type { Feature } from "../../policy/snapshot.ts";
import type { WireFormat } from "../dialects/dialect.ts";
import { fold, folded, isObject, type JsonObject } from "../dialects/fields.ts";
import { dialects } from "../dialects/registry.ts";
import type { JsonBody } from "./json-body.ts";
import type { LlmRoute } from "./routes.ts";

/** A field that is only allowed under a condition. */
export type Restricted =
  /** Allowed if each model is allowed. */
  | { readonly kind: "models"; readonly field: string; readonly models: readonly string[] }
  /** Allowed if the ModelProvider allows the feature. */
  | { readonly kind: "feature"; readonly field: string; readonly feature: Feature }
  /** Allowed if no budget applies, or the ModelProvider allows the feature. */
  | { readonly kind: "unmetered"; readonly field: string; readonly feature: Feature };

/** Lists of further models to try; strings, or objects with a `model`. */
const MODEL_LISTS = folded("models", "fallbacks", "fallback_models");

const REMOTE_RESOURCES = folded(
  // Fields with addresses.
  "api_base",
  "base_url",
  "api_type",
  "api_version",
  "custom_llm_provider",
  "data_sources",
  "mcp_servers",
  "kv_transfer_params",
  "callback_url",
  "webhook_url",
  "proxy",
  // Fields with keys, and with headers that may contain one.
  "api_key",
  "authorization",
  "credentials",
  "vertex_credentials",
  "aws_access_key_id",
  "aws_secret_access_key",
  "aws_session_token",
  "azure_ad_token",
  "headers",
  "extra_headers",
  // Fields with whole configurations.
  "litellm_params",
  "user_config",
  "extra_body",
);

const OTHER_MODELS = folded(
  "route",
  "preset",
  "engine",
  "deployment_id",
  "specific_deployment",
  "model_list",
  "context_window_fallbacks",
  "content_policy_fallbacks",
  "provider_options",
  "compound_custom",
  // A prompt or agent stored at the vendor has a model of its own.
  "prompt_id",
  "agent_id",
  "assistant_id",
  // Gemini's countTokens accepts a whole request, which may name another model.
  "generate_content_request",
);

/** Tools and searches that the vendor runs, and bills in addition to the tokens. */
const SERVER_TOOL_FIELDS = folded(
  "web_search_options",
  "search_parameters",
  "search_settings",
  "enable_search",
  "plugins",
  "connectors",
  "file_ids",
);

/** Members of a tool that name a model, an address or a key. */
const TOOL_RESOURCES = folded(
  "model",
  "fallback_model",
  "server_url",
  "url",
  "endpoint",
  "connector_id",
  "authorization",
  "authorization_token",
  "api_key",
  "api_auth",
  "headers",
  "external_api",
  "mcp_servers",
);

/** Members of a tool that contain a schema: property names in it are the caller's own. */
const SCHEMAS = folded(
  "function",
  "function_declarations",
  "parameters",
  "parameters_json_schema",
  "input_schema",
  "schema",
  "input_examples",
);

/** Fields that change the price, with the values that cost the listed price or less. */
const LIST_PRICE: Readonly<Record<string, ReadonlySet<unknown>>> = {
  servicetier: new Set(["auto", "default", "standard", "standard_only", "flex"]),
  speed: new Set(["standard"]),
  inferencegeo: new Set(["global"]),
};

/** Normalized names of all checked fields. */
const JUDGED: ReadonlySet<string> = new Set([
  ...MODEL_LISTS,
  ...REMOTE_RESOURCES,
  ...OTHER_MODELS,
  ...SERVER_TOOL_FIELDS,
  ...Object.keys(LIST_PRICE),
  "prompt",
  "background",
  "tools",
]);

/** Maximum nesting of any vendor's tools outside of their schemas. */
const MAX_TOOL_DEPTH = 8;

/** Returns the restricted fields of a body, in its order. */
export function restrictedFields(route: LlmRoute, body: JsonBody): Restricted[] {
  const found: Restricted[] = [];
  for (const { key } of body.members) {
    const name = fold(key);
    // The rest, mainly prompts, need not be parsed.
    if (!JUDGED.has(name)) continue;
    const value = body.get(key);
    if (value === null || value === undefined) continue;
    const restricted = judge(name, key, value);
    if (restricted !== undefined) found.push(restricted);
    else if (name === "tools") addTools(found, route.dialect, key, value);
  }
  return found;
}

/** @param name normalized name of the field */
function judge(name: string, field: string, value: unknown): Restricted | undefined {
  if (MODEL_LISTS.has(name)) return modelList(field, value);
  if (REMOTE_RESOURCES.has(name)) return { kind: "feature", field, feature: "remoteResources" };
  if (OTHER_MODELS.has(name) || (name === "prompt" && isObject(value))) {
    return { kind: "feature", field, feature: "otherModels" };
  }
  if (SERVER_TOOL_FIELDS.has(name) && !isEmpty(value)) {
    return { kind: "unmetered", field, feature: "serverTools" };
  }
  if (name === "background" && value !== false) {
    return { kind: "unmetered", field, feature: "background" };
  }
  const listPrice = LIST_PRICE[name];
  return listPrice === undefined || listPrice.has(lowerCase(value))
    ? undefined
    : { kind: "unmetered", field, feature: "serviceTiers" };
}

function addTools(found: Restricted[], dialect: WireFormat, key: string, value: unknown): void {
  const tools: readonly unknown[] = Array.isArray(value) ? value : [value];
  for (const [index, tool] of tools.entries()) {
    if (!isObject(tool)) continue;
    const field = `${key}[${index}]`;
    const resource = toolResource(tool, field);
    if (resource !== undefined) {
      const feature = fold(resource.name).endsWith("model") ? "otherModels" : "remoteResources";
      found.push({ kind: "feature", field: resource.path, feature });
    }
    if (!dialects[dialect].isClientTool(tool)) {
      found.push({ kind: "unmetered", field, feature: "serverTools" });
    }
  }
}

/**
 * Returns the first member of a tool, outside of its schemas, that names a model, an address or a
 * key.
 */
function toolResource(
  tool: JsonObject,
  path: string,
): { readonly name: string; readonly path: string } | undefined {
  const left: { readonly value: unknown; readonly path: string; readonly depth: number }[] = [
    { value: tool, path, depth: 0 },
  ];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value, path: at, depth } = next;
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) {
        left.push({ value: item as unknown, path: `${at}[${index}]`, depth });
      }
    } else if (isObject(value)) {
      for (const [name, inner] of Object.entries(value)) {
        const here = `${at}.${name}`;
        if (SCHEMAS.has(fold(name))) continue;
        if (TOOL_RESOURCES.has(fold(name)) && inner !== null) return { name, path: here };
        if (depth === MAX_TOOL_DEPTH) return { name, path: here };
        left.push({ value: inner, path: here, depth: depth + 1 });
      }
    }
  }
  return undefined;
}

function modelList(field: string, value: unknown): Restricted {
  const items: readonly unknown[] = Array.isArray(value) ? value : [value];
  const models = items.map((item) => (isObject(item) ? item["model"] : item));
  // A list with entries other than models cannot be evaluated.
  return models.every((model) => typeof model === "string")
    ? { kind: "models", field, models }
    : { kind: "feature", field, feature: "otherModels" };
}

function isEmpty(value: unknown): boolean {
  return value === false || (Array.isArray(value) && value.length === 0);
}

function lowerCase(value: unknown): unknown {
  return typeof value === "string" ? value.toLowerCase() : value;
}
