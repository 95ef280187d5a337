/** The facts that the pipeline needs about a request before it is forwarded. */
import { BadRequestError, type BodyFields, type CallFacts } from "../dialects/dialect.ts";
import { choiceCount, streamFlag, tokenLimit } from "../dialects/facts.ts";
import { dialects } from "../dialects/registry.ts";
import { checkModelName } from "./model-name.ts";
import type { LlmRoute } from "./routes.ts";

export interface RequestFacts extends Omit<CallFacts, "model"> {
  /** The model as named by the caller. */
  readonly model: string;
}

/** @throws BadRequestError */
export function readFacts(route: LlmRoute, body: BodyFields): RequestFacts {
  const { operation } = route;
  const isChat = operation === "chat" || operation === "responses";
  const facts = isChat ? dialects[route.dialect].readFacts(body) : plain(body);
  const model = route.model ?? facts.model;
  if (model === undefined) throw new BadRequestError("model: required, a string", "model");
  checkModelName(model);
  return { ...facts, model, stream: route.stream ?? facts.stream };
}

/** Embeddings and token counting. */
function plain(body: BodyFields): CallFacts {
  const model = body.get("model");
  if (model !== undefined && typeof model !== "string") {
    throw new BadRequestError("model: must be a string", "model");
  }
  return {
    model,
    stream: streamFlag(body),
    maxOutputTokens: tokenLimit(body.get("max_output_tokens"), "max_output_tokens"),
    choices: choiceCount(body.get("n"), "n"),
    reasoning: { kind: "unspecified" },
    wantsUsage: true,
  };
}
