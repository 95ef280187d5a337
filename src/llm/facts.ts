/** What the pipeline must know of a request before it goes anywhere. */
import { BadRequestError, type CallFacts } from "./dialects/dialect.ts";
import { tokenLimit } from "./dialects/facts.ts";
import { dialects } from "./dialects/registry.ts";
import type { LlmRoute } from "./routes.ts";

export interface RequestFacts extends Omit<CallFacts, "model"> {
  /** As the caller named it. */
  readonly model: string;
}

/** @throws BadRequestError */
export function readFacts(route: LlmRoute, body: unknown): RequestFacts {
  const facts =
    route.operation === "chat" ? dialects[route.dialect].readFacts(body) : plainFacts(body);
  const model = route.model ?? facts.model;
  if (model === undefined || model === "")
    throw new BadRequestError("model: required, a string", "model");
  return { ...facts, model, stream: route.stream ?? facts.stream };
}

/** Embeddings, responses and token counting: passed through as they are. */
function plainFacts(body: unknown): CallFacts {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new BadRequestError("the body must be a JSON object");
  }
  const { model, stream, max_output_tokens: limit } = body as Record<string, unknown>;
  if (model !== undefined && typeof model !== "string")
    throw new BadRequestError("model: must be a string", "model");
  return {
    model,
    stream: stream === true,
    maxOutputTokens: tokenLimit(limit, "max_output_tokens"),
    choices: 1,
    wantsUsage: true,
  };
}
