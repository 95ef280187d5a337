/** Numbers that identify a person or an account: payment cards and telephones. */
import { type Group, groupsOf } from "./digits.ts";
import type { Span } from "./span.ts";

/** Yields the card and telephone numbers of a text, in order. */
export function* numbersIn(text: string): Generator<Span> {
  const groups = groupsOf(text);
  for (let at = 0; at < groups.length;) {
    const card = cardAt(groups, at);
    const count = card > 0 ? card : phoneAt(groups, at);
    const { start, sign } = groups[at] as Group;
    const end = groups[at + count - 1]?.end ?? start;
    if (card > 0) yield { start, end, kind: "card" };
    else if (count > 0) yield { start: start - sign, end, kind: "phone" };
    at += Math.max(1, count);
  }
}

/** Separators that people, URLs and forms put between the groups of a number. */
const CARD_GAP = /^(?:[ .()\u00a0/+-]|%2[089Ff]){1,3}$/;

/** Cards are also found across the end of a line: also as JSON and quoted-printable write it. */
const LINE_END = /^[ .-]?(?:=?\r?\n|(?:\\{1,4}r)?\\{1,4}n)[ \t.-]{0,8}$/;

/** Lengths of the groups in which card numbers are written. */
const CARD_GROUPS = /^(?:1[3-9]|4,4,4,[1-4]|4,4,4,4,[1-3]|4,6,[45]|8,8)$/;
const MAX_CARD_GROUPS = 6;

/** First digits of issuers: https://en.wikipedia.org/wiki/Payment_card_number */
const ISSUER = /^(?:4|5[0-8]|2[2-7]|3[0-9]|6)/;

/** Returns the number of groups from `at` that are a card's number; 0 for none. */
function cardAt(groups: readonly Group[], at: number): number {
  const first = groups[at];
  // The decimals of a number are no card, however many they are.
  if (first === undefined || !ISSUER.test(first.digits) || first.gap === ".") return 0;
  const lengths: number[] = [];
  let digits = "";
  let found = 0;
  let hasLineEnd = false;
  for (let count = 1; count <= MAX_CARD_GROUPS; count += 1) {
    const group = groups[at + count - 1];
    if (group === undefined || digits.length + group.digits.length > 19) break;
    const isLineEnd = count > 1 && LINE_END.test(group.gap);
    if (isLineEnd ? hasLineEnd : count > 1 && !CARD_GAP.test(group.gap)) break;
    hasLineEnd ||= isLineEnd;
    digits += group.digits;
    // A line may end within a group.
    const isCut = isLineEnd && lengths.at(-1) !== 4;
    lengths.push(group.digits.length + (isCut ? (lengths.pop() ?? 0) : 0));
    if (CARD_GROUPS.test(lengths.join()) && isCardNumber(digits)) found = count;
  }
  return found;
}

/** Returns whether digits are a card's number (ISO/IEC 7812) by their check digit. */
function isCardNumber(digits: string): boolean {
  return !/^(.)\1+$/.test(digits) && hasLuhnDigit(digits);
}

/** https://en.wikipedia.org/wiki/Luhn_algorithm */
function hasLuhnDigit(digits: string): boolean {
  let sum = 0;
  for (let index = 0; index < digits.length; index += 1) {
    const digit = Number(digits[digits.length - 1 - index]);
    const doubled = index % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** Digits of a telephone number (E.164). */
const MIN_PHONE = 8;
const MIN_NATIONAL = 9;
const MAX_PHONE = 15;
const MAX_PHONE_GROUPS = 8;

const PHONE_GAP = /^(?:(?:[ .()\u00a0/-]|%2[089Ff]){1,3}|%29\+)$/;

/**
 * Returns the number of groups from `at` that are a telephone number: international (E.164), North
 * American, or national with a leading 0; 0 for none. Plain numbers, versions, dates and amounts
 * are none.
 */
function phoneAt(groups: readonly Group[], at: number): number {
  const first = groups[at];
  if (first === undefined || !(first.sign > 0 || /^(?:0\d|1$|\d{3}$)/.test(first.digits))) return 0;
  const chain = chainAt(groups, at);
  if (first.sign > 0) return digitsOf(chain) >= MIN_PHONE ? chain.length : 0;
  if (first.isAttached) return 0;
  const count = northAmerican(chain) || national(chain);
  return chain[count - 1]?.goesOn === true ? 0 : count;
}

/** Returns the groups from `at` that may be one number. */
function chainAt(groups: readonly Group[], at: number): readonly Group[] {
  const chain: Group[] = [];
  let total = 0;
  while (chain.length < MAX_PHONE_GROUPS) {
    const group = groups[at + chain.length];
    if (group === undefined || total + group.digits.length > MAX_PHONE) break;
    if (chain.length > 0 && !PHONE_GAP.test(group.gap)) break;
    // The next national number.
    if (total >= MIN_NATIONAL && group.digits.startsWith("0")) break;
    total += group.digits.length;
    chain.push(group);
  }
  return chain;
}

const digitsOf = (groups: readonly Group[]): number =>
  groups.reduce((sum, { digits }) => sum + digits.length, 0);

/** `555-010-9999`, also after a `1`. */
function northAmerican(chain: readonly Group[]): number {
  const hasCountry = chain[0]?.digits === "1";
  const count = hasCountry ? 4 : 3;
  const [area, exchange, line] = chain.slice(hasCountry ? 1 : 0).map(({ digits }) => digits);
  const isNumber =
    area?.length === 3 && exchange?.length === 3 && line?.length === 4 && /^[2-9]/.test(area);
  return isNumber ? count : 0;
}

/** `0170 1234567`, `0049 170 1234567`. */
function national(chain: readonly Group[]): number {
  const isNumber =
    chain.length > 1 &&
    digitsOf(chain) >= MIN_NATIONAL &&
    /^0(?:[1-9]\d{0,4}|0\d{2,4})$/.test(chain[0]?.digits ?? "");
  return isNumber ? chain.length : 0;
}
