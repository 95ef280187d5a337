/** Which parameters an OpenAI model takes, by its name. */
import type { Reasoning } from "../model.ts";

/**
 * Returns whether a model takes `temperature`, `top_p` and penalties. The o-series and GPT-5 refuse
 * them, and later models refuse them while they reason.
 *
 * Source: https://platform.openai.com/docs/guides/latest-model ("Parameter compatibility")
 */
export function takesSampling(model: string, reasoning: Reasoning | undefined): boolean {
  const name = model.slice(model.lastIndexOf("/") + 1);
  if (/^(?:o\d|gpt-5(?![.\d]|-chat))/.test(name)) return false;
  const reasons = reasoning?.kind === "effort" || reasoning?.kind === "budget";
  return !(reasons && /^gpt-5\.\d/.test(name));
}
