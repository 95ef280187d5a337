/** Where the shared counters are: from the environment, since the address may hold a password. */
import { readFileSync } from "node:fs";
import type { Env } from "../compile/policy-secrets.ts";
import { parseRedisSettings, type RedisOptions } from "../limits/redis-options.ts";

/**
 * Reads `SVC_REDIS_URL` and what goes with it.
 * @returns undefined where no store is named
 * @throws Error that says what is wrong; shows no value
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
