/** UTC days: budgets begin at midnight UTC, wherever the gateway runs. */

export const DAY_MS = 86_400_000;

let lastNumber = Number.NaN;
let lastName = "";

/**
 * Returns the UTC day, `2026-11-21`. Caches the last answer, because nearly every call asks for the
 * same day.
 */
export function utcDay(at: number): string {
  const number = Math.floor(at / DAY_MS);
  if (number !== lastNumber) {
    lastName = new Date(number * DAY_MS).toISOString().slice(0, 10);
    lastNumber = number;
  }
  return lastName;
}

export function msToNextDay(now: number): number {
  return DAY_MS - (((now % DAY_MS) + DAY_MS) % DAY_MS);
}
