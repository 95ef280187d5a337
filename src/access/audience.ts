/** The audiences of the gateway: who may call, and by which paths. */

/** The kinds of callers: agents with their workload tokens, or holders of access keys. */
export type Audience = "internal" | "external";

/** Prefix of the external gateway's paths. */
export const EXTERNAL_PREFIX = "/ext";

/** `/ext/v1/messages` -> external, `/v1/messages`. */
export function splitAudience(pathname: string): {
  readonly audience: Audience;
  readonly pathname: string;
} {
  if (!pathname.startsWith(`${EXTERNAL_PREFIX}/`)) return { audience: "internal", pathname };
  return {
    audience: "external",
    pathname: pathname.slice(EXTERNAL_PREFIX.length).replace(/^\/v1\/v1\//, "/v1/"),
  };
}

/**
 * Returns the external paths of an internal one: {@link splitAudience} in the other direction.
 * Anthropic's clients append `/v1` to their base URL, so `{base_url}/ext/v1` becomes
 * `/ext/v1/v1/...`.
 */
export function externalPaths(path: string): readonly string[] {
  return [`${EXTERNAL_PREFIX}${path}`, `${EXTERNAL_PREFIX}/v1${path}`];
}
