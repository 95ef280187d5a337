import { describe, expect, test } from "vitest";
import { backoffMs, connectRedis, reasonOf } from "./redis-client.ts";
import { parseRedisSettings } from "./redis-options.ts";

describe("the delay before a connection attempt", () => {
  test.each([
    [0, 10, 20],
    [1, 20, 40],
    [6, 640, 1_280],
    [7, 1_000, 2_000],
    [10, 1_000, 2_000],
    [10_000, 1_000, 2_000],
  ])("after %i failures is between %i and %i ms", (failures, least, most) => {
    expect(backoffMs(failures, () => 0)).toBe(least);
    expect(backoffMs(failures, () => 0.5)).toBe((least + most) / 2);
    expect(backoffMs(failures, () => 1)).toBe(most);
  });
});

describe("the connection", () => {
  function optionsOf(url: string, more: object = {}): Record<string, unknown> {
    const client = connectRedis({ ...parseRedisSettings({ url }), ...more }, () => 1);
    client.on("error", () => undefined);
    client.disconnect();
    return client.options as unknown as Record<string, unknown>;
  }

  test("never queues, repeats or delays a command", () => {
    expect(optionsOf("redis://127.0.0.1:1")).toMatchObject({
      host: "127.0.0.1",
      port: 1,
      db: 0,
      protocol: 2,
      disableClientInfo: true,
      enableReadyCheck: false,
      connectTimeout: 2_000,
      keepAlive: 10_000,
      noDelay: true,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      enableOfflineQueue: false,
      enableAutoPipelining: false,
    });
  });

  test("has the user, the password and the database of its address", () => {
    expect(optionsOf("redis://me:secret@127.0.0.1:1/3")).toMatchObject({
      username: "me",
      password: "secret",
      db: 3,
    });
  });

  test.each([
    ["store.test", { ca: "x", servername: "store.test" }],
    ["127.0.0.1", { ca: "x" }],
    ["::1", { ca: "x" }],
  ])("over TLS to %s sends its name, if it is one", (host, tls) => {
    expect(optionsOf("redis://127.0.0.1:1", { host, tls: { ca: "x" } })["tls"]).toEqual(tls);
  });

  test("without TLS is plain", () => {
    expect(optionsOf("redis://127.0.0.1:1")["tls"]).toBeUndefined();
  });
});

describe("the reason of an error", () => {
  test.each<[unknown, string]>([
    [new Error("NOAUTH Authentication required."), "NOAUTH: it asks for a password"],
    [new Error("-LOADING Redis is loading"), "LOADING: it is loading its data"],
    [new Error("MOVED 1234 10.0.0.1:6379"), "MOVED: it is one node of a Redis Cluster"],
    [new Error("ERR AUTH <password> called without"), "ERR: it rejects the authentication command"],
    [
      new Error("ERR unknown command 'x', with args beginning with: 'secret'"),
      "ERR unknown command 'x'",
    ],
    [new Error("ERR x with args beginning with: 'a\nsecret'"), "ERR x"],
    [new Error("connect ECONNREFUSED 127.0.0.1:1"), "connect ECONNREFUSED 127.0.0.1:1"],
    [Object.assign(new Error(""), { code: "ECONNREFUSED" }), "ECONNREFUSED"],
    [new AggregateError([]), "AggregateError"],
    ["secret", "unknown"],
    [undefined, "unknown"],
  ])("%s: %s", (error, reason) => {
    const told = reasonOf(error);
    expect(told.startsWith(reason)).toBe(true);
    expect(told).not.toContain("secret");
  });

  test("is short", () => {
    expect(reasonOf(new Error("x".repeat(500)))).toBe("x".repeat(200));
    expect(reasonOf(new Error("lower NOAUTH"))).toBe("lower NOAUTH");
  });
});
