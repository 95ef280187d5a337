/** Address of the shared counters: from the environment, because it may contain a password. */
import { readFileSync } from "node:fs";
import type { Env } from "../compile/policy-secrets.ts";
import { parseRedisSettings, type RedisOptions } from "../limits/redis/redis-options.ts";

/**
 * Reads `SVC_REDIS_URL` and the related variables.
 * @returns undefined if no store is configured
 * @throws Error that states the problem; contains no value
 */
export function redisFromEnvironment(env: Env): RedisOptions | undefined {
  const read = (name: string): string | undefined => env[`SVC_REDIS_${name}`] || undefined;
  const url = read("URL");
  if (url === undefined) return undefined;
  const username = read("USERNAME");
  const password = read("PASSWORD");
  const database = read("DATABASE");
  const caFile = read("CA_FILE");
  return parseRedisSettings({
    url,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(database !== undefined && { database: Number(database) }),
    ...(caFile !== undefined && { ca: readFileSync(caFile, "utf8") }),
  });
}
