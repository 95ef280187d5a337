/**
 * Llama Guard behind an OpenAI-compatible chat endpoint (vLLM, Ollama, llama.cpp, hosted ones). The
 * server's chat template puts the text into Llama Guard's own instruction, and the model answers
 * `safe`, or `unsafe` and a line of categories
 * (https://github.com/meta-llama/PurpleLlama/blob/main/Llama-Guard3/8B/MODEL_CARD.md).
 *
 * The text is data of an attacker, who may address Llama Guard itself. It is the only message, of
 * the user, and what would end that message in the template is made harmless. An answer other than
 * the two forms is no classification.
 */
import * as z from "zod";
import { type Label, type Scores } from "./protocol.ts";

/**
 * Labels of categories such as `S14`. A category that is not listed counts as `jailbreak`; one that
 * is listed as `benign` is ignored.
 */
export type LlamaGuardCategories = ReadonlyMap<string, Label>;

/** Enough for `unsafe` and all of the categories. */
const MAX_ANSWER_TOKENS = 100;

/** Body of a chat completion request that asks for the classification of a text. */
export function llamaGuardRequest(text: string, model: string): object {
  return {
    model,
    messages: [{ role: "user", content: withoutTemplateMarks(text) }],
    temperature: 0,
    max_tokens: MAX_ANSWER_TOKENS,
    stream: false,
  };
}

/**
 * Separates the characters of what has a meaning in the templates of Llama Guard 1 to 4: special
 * tokens (`<|eot_id|>`, `</s>`, `<s>`), `[INST]`, `<<SYS>>`, `<BEGIN CONVERSATION>` and the names
 * of speakers at the start of a line. Many servers read special tokens in the text of a message as
 * tokens, so that a text could end its message and write the answer.
 */
function withoutTemplateMarks(text: string): string {
  return text
    .replaceAll("<|", "< |")
    .replaceAll("|>", "| >")
    .replace(/\[(?=\/?INST\])/gi, "[ ")
    .replace(/<(?=\/?s>|<\/?SYS>>|(?:BEGIN|END)\b)/gi, "< ")
    .replace(/^(?=(?:User|Agent)[ \t]{0,9}:)/gim, "> ");
}

const completionSchema = z.object({
  choices: z.tuple([
    z.object({
      message: z.object({ role: z.literal("assistant"), content: z.string() }),
      finish_reason: z.literal("stop").nullish(),
    }),
  ]),
});

/** The longest has all categories, and a space after each comma. */
const MAX_VERDICT_CHARS = 200;
const UNSAFE = /^unsafe(?:\n(S\d{1,2}(?:, ?S\d{1,2})*))?$/;

/**
 * Returns the scores of a chat completion's body, each 0 or 1; undefined if it is no answer of
 * Llama Guard.
 */
export function parseLlamaGuardAnswer(
  body: string,
  categories: LlamaGuardCategories = new Map(),
): Scores | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return undefined;
  }
  const parsed = completionSchema.safeParse(value);
  if (!parsed.success) return undefined;
  const [choice] = parsed.data.choices;
  const verdict = choice.message.content;
  return verdict.length > MAX_VERDICT_CHARS
    ? undefined
    : scoresOf(verdict.trim().replace("\r\n", "\n"), categories);
}

function scoresOf(verdict: string, categories: LlamaGuardCategories): Scores | undefined {
  if (verdict === "safe") return { benign: 1, injection: 0, jailbreak: 0 };
  const unsafe = UNSAFE.exec(verdict);
  if (unsafe === null) return undefined;
  // The models that are trained without categories answer `unsafe` alone.
  const listed = unsafe[1]?.split(",").map((category) => category.trim()) ?? ["none"];
  const labels = new Set(listed.map((category) => categories.get(category) ?? "jailbreak"));
  const injection = labels.has("injection") ? 1 : 0;
  const jailbreak = labels.has("jailbreak") ? 1 : 0;
  return { benign: injection + jailbreak > 0 ? 0 : 1, injection, jailbreak };
}
