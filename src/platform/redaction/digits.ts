/** Finds the groups of digits of a text, and what is between them. */

export interface Group {
  readonly digits: string;
  readonly start: number;
  readonly end: number;
  /** The text between it and the group before, or the end of that. */
  readonly gap: string;
  /** Whether it goes on a word. */
  readonly isAttached: boolean;
  /** Whether a word goes on it. */
  readonly goesOn: boolean;
  /** Length of the plus sign before it, which may be encoded; 0 if there is none. */
  readonly sign: number;
}

/** Escapes of URLs and JSON, and dates: their digits belong to no number. */
const ESCAPE = /%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\[nrtbf]/.source;
const DATE = /(?:19|20)\d\d-[01]\d-[0-3]\d(?!\d)|[0-3]?\d[./][01]?\d[./](?:19|20)\d\d(?!\d)/.source;
const GROUP = new RegExp(`${ESCAPE}|${DATE}|\\d+`, "g");

/** Longer gaps separate numbers, whatever they contain. */
const MAX_GAP = 12;

/** Returns the groups of digits of a text, in order. */
export function groupsOf(text: string): readonly Group[] {
  const groups: Group[] = [];
  let end = 0;
  /** End of the last escape or date. */
  let other = 0;
  for (const { 0: digits, index: start } of text.matchAll(GROUP)) {
    if (!/^\d+$/.test(digits)) {
      other = start + digits.length;
      continue;
    }
    const isAttached = start > other && /[A-Za-z0-9]/.test(text[start - 1] ?? "");
    const gap = text.slice(Math.max(end, start - MAX_GAP), start);
    end = start + digits.length;
    const goesOn = /[A-Za-z]/.test(text[end] ?? "");
    groups.push({ digits, start, end, gap, isAttached, goesOn, sign: signBefore(text, start) });
  }
  return groups;
}

function signBefore(text: string, start: number): number {
  if (text[start - 1] === "+") return 1;
  return text.slice(Math.max(0, start - 3), start) === "%2B" ? 3 : 0;
}
