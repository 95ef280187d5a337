/** Redis from a container engine, by testcontainers. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { attachLab } from "../support/cluster/lab.ts";
import { RedisContainer } from "../support/cluster/redis-container.ts";

let redis: RedisContainer;

beforeAll(async () => {
  redis = await RedisContainer.start(attachLab());
});

afterAll(async () => {
  await redis.stop();
});

test("answers on a port of the node, and is empty after a restart", async () => {
  expect(await redis.command("SET", "key", "value")).toBe("OK");
  expect(await redis.command("GET", "key")).toBe("value");
  await redis.restart();
  expect(await redis.command("GET", "key")).toBeNull();
});
