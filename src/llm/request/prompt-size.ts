/**
 * Estimates a body's tokens, rather too high than too low: the reservation before a provider has
 * counted, without its tokenizer.
 */
import type { JsonSize } from "../../platform/json/scan.ts";

/** Approximate maximum cost of an image or a page with every vendor, whatever its size. */
const TOKENS_OF_FILE = 1_600;

/** English has about 4 bytes per token, code and other languages fewer. */
const BYTES_PER_TOKEN = 3;

/**
 * @param size of the body: texts count by their bytes, names of fields too (schemas of tools are
 * prompts), files by their number
 */
export function estimatePromptTokens({ text, files }: JsonSize): number {
  return Math.ceil(text / BYTES_PER_TOKEN) + files * TOKENS_OF_FILE;
}
