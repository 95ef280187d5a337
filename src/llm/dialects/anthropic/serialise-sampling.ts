/** Sampling parameters of a messages request, as far as the model takes them. */
import type { ChangeLog } from "../changes.ts";
import type { ChatRequest } from "../model.ts";
import { samplingOf } from "./generation.ts";

/**
 * Writes `temperature`, `top_p` and `top_k`. Claude refuses any value but the usual one while it
 * thinks; see also {@link samplingOf}.
 */
export function serialiseSampling(
  request: ChatRequest,
  model: string,
  thinks: boolean,
  changes: ChangeLog,
): object {
  const { temperature, topP, topK, names } = request;
  const taken = thinks ? "none" : samplingOf(model);
  const why = thinks ? `is not taken by ${model} while it thinks` : `is not taken by ${model}`;
  if (taken === "none") {
    if (temperature !== undefined && temperature !== 1) {
      changes.lose(names.temperature ?? "temperature", why);
    }
    if (topP !== undefined && topP !== 1) changes.lose(names.topP ?? "top_p", why);
    if (topK !== undefined) changes.lose(names.topK ?? "top_k", why);
    return {};
  }
  if (temperature !== undefined && temperature > 1)
    changes.note("temperature capped at 1, as Anthropic's OpenAI-compatible endpoint does");
  const sampling = {
    ...(temperature === undefined ? {} : { temperature: Math.min(1, temperature) }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(topK === undefined ? {} : { top_k: topK }),
  };
  if (taken === "all" || temperature === undefined || topP === undefined) return sampling;
  // The usual temperature asks for nothing: `top_p` is the one that was meant.
  if (temperature === 1) return { ...sampling, temperature: undefined };
  if (topP !== 1) {
    changes.lose(names.topP ?? "top_p", `is not taken by ${model} beside a temperature`);
  }
  return { ...sampling, top_p: undefined };
}
