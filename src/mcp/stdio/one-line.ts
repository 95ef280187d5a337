/** Messages in the form of the transport stdio: each is one line. */

/** Ends of lines as the widest readers know them. Those of the second class are in strings only. */
const BREAKS = /[\n\r]/g;
const IN_STRINGS = /[\u0085\u2028\u2029]/g;

/**
 * Returns a JSON text without ends of lines, which says the same. Without it, a part of a message
 * that is a line by itself would be read as a message, which nobody has judged.
 *
 * @param json valid JSON: strings in it contain no control characters
 */
export function oneLine(json: string): string {
  return json
    .replaceAll(BREAKS, " ")
    .replaceAll(IN_STRINGS, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
