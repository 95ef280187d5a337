/** RequestEcho of the Responses API: a response repeats the settings of its request. */
import type { BodyFields } from "../dialect.ts";
import type { RequestEcho } from "../model.ts";
import { echoedTools } from "./tools.ts";

/** The settings of a response, with OpenAI's defaults for requests that do not have them. */
export const DEFAULT_SETTINGS: Readonly<Record<string, unknown>> = {
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  temperature: null,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  top_logprobs: 0,
  top_p: null,
  truncation: "disabled",
  user: null,
};

/** Longest setting, as JSON: a larger one (a schema) is left out, because it lives for a call. */
const LONGEST_SETTING = 16_384;

export function readEcho(body: BodyFields): RequestEcho {
  const settings: Record<string, unknown> = {};
  for (const name of Object.keys(DEFAULT_SETTINGS)) {
    const value = body.get(name);
    if (value === undefined || value === null) continue;
    if (JSON.stringify(value).length <= LONGEST_SETTING) settings[name] = value;
  }
  return { settings, tools: echoedTools(body.get("tools")) };
}
