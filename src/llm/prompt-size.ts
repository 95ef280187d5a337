/**
 * How many tokens a request's body is, rather more than less: what is reserved for it before a provider has counted, and
 * without its tokenizer.
 */

/** An image or a page costs at most about this much with every vendor, however many bytes it has. */
const TOKENS_OF_MEDIA = 1_600;

/** English has about 4 bytes a token, code and other languages fewer. */
const BYTES_PER_TOKEN = 3;

/** Text this long without a space or a line's end is no text. */
const MEDIA = /^(?:data:[^,]{0,200},)?[A-Za-z0-9+/_-]{1024}/;

/** @param body parsed JSON: texts count by their bytes, names of fields too (tools' schemas are prompts), media by number */
export function estimatePromptTokens(body: unknown): number {
  let bytes = 0;
  let media = 0;
  // No recursion: how deep a body nests is its sender's to say.
  const left: unknown[] = [body];
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value === "string") {
      if (value.length >= 1024 && MEDIA.test(value)) media += 1;
      else bytes += Buffer.byteLength(value);
    } else if (Array.isArray(value)) {
      for (const item of value) left.push(item);
    } else if (typeof value === "object" && value !== null) {
      for (const [key, item] of Object.entries(value)) {
        bytes += key.length;
        left.push(item);
      }
    } else {
      bytes += 4;
    }
  }
  return Math.ceil(bytes / BYTES_PER_TOKEN) + media * TOKENS_OF_MEDIA;
}
