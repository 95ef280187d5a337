import { expect, test } from "vitest";
import { backoffMs, reasonOf } from "./redis-client.ts";
import { parseRedisSettings } from "./redis-options.ts";

test("an address alone", () => {
  expect(parseRedisSettings({ url: "redis://store" })).toEqual({
    host: "store",
    port: 6379,
    database: 0,
  });
});

test("all in the URL", () => {
  const options = parseRedisSettings({ url: "rediss://svc:p%40ss@[::1]:7000/3" });
  expect(options).toMatchObject({ host: "::1", port: 7000, username: "svc", database: 3, tls: {} });
  expect(options.password?.reveal()).toBe("p@ss");
});

test("single settings win", () => {
  const options = parseRedisSettings({
    url: "redis://a:b@store/1",
    username: "svc",
    password: "other",
    database: 2,
  });
  expect(options).toMatchObject({ username: "svc", database: 2 });
  expect(options.password?.reveal()).toBe("other");
});

test.each([
  ["secret", /is not a URL/],
  ["http://:secret@store", /begins with http:/],
  ["redis:///0", /has no host/],
  ["redis://:secret@store/one", /database that is not a whole number/],
  ["redis://:secret@store/-1", /database/],
  ["redis://:secret%@store", /% that is not an escape/],
  ["redis://:secret@store?db=1", /has a query/],
])("%s is an error that does not show it", (url, message) => {
  expect(() => parseRedisSettings({ url })).toThrow(message);
  expect(() => parseRedisSettings({ url })).not.toThrow(/secret/);
});

test("certificates that are none are an error", () => {
  for (const ca of ["", "PEM", "-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n"]) {
    expect(() => parseRedisSettings({ url: "rediss://store", ca })).toThrow(
      /CA certificates for Redis/,
    );
  }
});

test("reasons never show what Redis repeats of our arguments", () => {
  for (const message of [
    "ERR unknown command 'AUTH', with args beginning with: 'svc' 'secret' ",
    "ERR unknown command `FOO`, with args beginning with: `secret`",
    "WRONGPASS invalid username-password pair: secret",
  ]) {
    expect(reasonOf(new Error(message))).not.toContain("secret");
  }
  expect(reasonOf(Object.assign(new AggregateError([], ""), { code: "ECONNREFUSED" }))).toBe(
    "ECONNREFUSED",
  );
});

test("attempts to connect come apart, up to two seconds, with chance in them", () => {
  const steps = Array.from({ length: 12 }, (_, failures) => backoffMs(failures, () => 1));
  expect(steps).toEqual([20, 40, 80, 160, 320, 640, 1_280, 2_000, 2_000, 2_000, 2_000, 2_000]);
  expect(backoffMs(100, () => 0)).toBe(1_000);
});
