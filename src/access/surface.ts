/** The surfaces of the gateway: who may call, and by which paths. */

/** The kinds of callers: agents with their workload tokens, or holders of access keys. */
export type Surface = "internal" | "external";

/** Prefix of the external gateway's paths. */
export const EXTERNAL_PREFIX = "/ext";

/** `/ext/v1/messages` -> external, `/v1/messages`. */
export function splitSurface(pathname: string): {
  readonly surface: Surface;
  readonly pathname: string;
} {
  if (!pathname.startsWith(`${EXTERNAL_PREFIX}/`)) return { surface: "internal", pathname };
  return {
    surface: "external",
    pathname: pathname.slice(EXTERNAL_PREFIX.length).replace(/^\/v1\/v1\//, "/v1/"),
  };
}
