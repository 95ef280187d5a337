/**
 * How many tokens a request's body is, rather more than less: what is reserved for it before a
 * provider has counted, and without its tokenizer.
 */
import type { JsonSize } from "../platform/json/scan.ts";

/**
 * An image or a page costs at most about this much with every vendor, however many bytes it has.
 */
const TOKENS_OF_FILE = 1_600;

/** English has about 4 bytes a token, code and other languages fewer. */
const BYTES_PER_TOKEN = 3;

/**
 * @param size of the body: texts count by their bytes, names of fields too (tools' schemas are
 * prompts), files by number
 */
export function estimatePromptTokens({ text, files }: JsonSize): number {
  return Math.ceil(text / BYTES_PER_TOKEN) + files * TOKENS_OF_FILE;
}
