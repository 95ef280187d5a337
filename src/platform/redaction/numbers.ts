/** Numbers that identify a person or an account. */

/** Digits of card numbers (ISO/IEC 7812). */
const CARD = { least: 13, most: 19 };

/** Returns whether a number is one of a payment card: its length, first digit and check digit. */
export function isCardNumber(text: string): boolean {
  const digits = text.replaceAll(/[^0-9]/g, "");
  return (
    digits.length >= CARD.least &&
    digits.length <= CARD.most &&
    /^[2-6]/.test(digits) &&
    !/^(.)\1+$/.test(digits) &&
    hasLuhnDigit(digits)
  );
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

/**
 * Returns whether a number is written like a telephone number: international (E.164), or in groups.
 * Plain numbers, versions, dates and amounts are not.
 */
export function isPhoneNumber(text: string): boolean {
  const digits = text.replaceAll(/[^0-9]/g, "");
  if (text.startsWith("+")) return digits.length >= 8 && digits.length <= 15;
  if (digits.length < 9 || digits.length > 15) return false;
  if (/^\d{4}-\d{2}-\d{2}/.test(text)) return false;
  const isNorthAmerican = /^(?:1[ .-])?\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}$/.test(text);
  const isNational = /^\(?0\d{1,5}\)?[ /-][\d -]{5,14}$/.test(text);
  return isNorthAmerican || isNational;
}
