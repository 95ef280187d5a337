/** Reads the delay that an upstream requests. */

/**
 * @param headers `retry-after-ms` (milliseconds) takes precedence over `retry-after` (seconds, or
 * an HTTP date, RFC 9110 10.2.3)
 * @returns milliseconds, never negative; undefined if there is no valid value
 */
export function retryAfterMs(
  headers: { readonly retryAfterMs?: string | undefined; readonly retryAfter?: string | undefined },
  now: number,
): number | undefined {
  const precise = number(headers.retryAfterMs);
  if (precise !== undefined) return precise;
  const text = headers.retryAfter?.trim();
  if (text === undefined || text === "") return undefined;
  const seconds = number(text);
  if (seconds !== undefined) return Math.ceil(seconds * 1000);
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

function number(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d+(\.\d+)?$/.test(text.trim())) return undefined;
  return Number(text);
}
