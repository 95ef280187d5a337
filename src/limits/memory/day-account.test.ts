import { describe, expect, test } from "vitest";
import { covers, DayAccount, whole, wholeAmounts } from "./day-account.ts";

const MAX = Number.MAX_SAFE_INTEGER;

test.each([
  [7, 7],
  [0, 0],
  [0.1, 1],
  [7.5, 8],
  [-1, 0],
  [Number.NaN, 0],
  [Number.NEGATIVE_INFINITY, 0],
  [MAX, MAX],
  [Number.POSITIVE_INFINITY, MAX],
])("%d counts as %d: never less than was used, and never below zero", (amount, counted) => {
  expect(whole(amount)).toBe(counted);
  expect(wholeAmounts({ tokens: amount, microUsd: amount, requests: amount })).toEqual({
    tokens: counted,
    microUsd: counted,
    requests: counted,
  });
});

describe("a reservation covers what is asked", () => {
  const held = { tokens: 5, microUsd: 6, requests: 7 };

  test("only if it does in every unit", () => {
    expect(covers(held, held)).toBe(true);
    expect(covers(held, { tokens: 0, microUsd: 0, requests: 0 })).toBe(true);
    expect(covers(held, { tokens: 6, microUsd: 0, requests: 0 })).toBe(false);
    expect(covers(held, { tokens: 0, microUsd: 7, requests: 0 })).toBe(false);
    expect(covers(held, { tokens: 0, microUsd: 0, requests: 8 })).toBe(false);
  });
});

describe("an account of a day", () => {
  function account(): DayAccount {
    const day = new DayAccount("2026-11-21", "a|b");
    day.add({ tokens: 1, microUsd: 2, requests: 3, unpriced: true });
    day.add({ tokens: 10, microUsd: 20, requests: 30, unpriced: false });
    return day;
  }

  test("begins with nothing, under a name that cannot be taken for two", () => {
    const { own, others, stored, reserved, leases, field } = new DayAccount("2026-11-21", "a|b");
    const nothing = { tokens: 0, microUsd: 0, requests: 0, unpricedRequests: 0 };
    expect({ own, others, stored }).toEqual({ own: nothing, others: nothing, stored: nothing });
    expect({ reserved, leases }).toEqual({
      reserved: { tokens: 0, microUsd: 0, requests: 0 },
      leases: 0,
    });
    expect(field).toBe("a%7Cb");
  });

  test("is the sum of our calls and of all that others were heard to have used", () => {
    const day = account();
    expect(day.own).toEqual({ tokens: 11, microUsd: 22, requests: 33, unpricedRequests: 1 });
    day.heard("tokens", 100);
    day.heard("microUsd", 200);
    day.heard("requests", 300);
    day.heard("unpricedRequests", 4);
    const sum = { tokens: 111, microUsd: 222, requests: 333, unpricedRequests: 5 };
    expect(day.total).toEqual(sum);
    // A store that has lost data says less.
    for (const unit of ["tokens", "microUsd", "requests", "unpricedRequests"] as const)
      day.heard(unit, 0);
    expect(day.total).toEqual(sum);
  });
});
