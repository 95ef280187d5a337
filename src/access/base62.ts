/**
 * Keys and tokens consist of letters and digits, so that no shell, URL or header can misinterpret
 * them.
 */
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Length of 256 bits in base 62. */
export const BASE62_256_LENGTH = 43;

/** @param bytes 32 bytes @returns 43 letters and digits */
export function base62(bytes: Uint8Array): string {
  let value = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  let text = "";
  while (text.length < BASE62_256_LENGTH) {
    text = DIGITS.charAt(Number(value % 62n)) + text;
    value /= 62n;
  }
  return text;
}
