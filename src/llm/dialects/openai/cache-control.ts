/** Cache marks on chat completions: OpenAI's own breakpoints and Anthropic's marks. */
import type { Fields } from "../fields.ts";
import type { CacheMark } from "../model.ts";

/** OpenAI's breakpoint, or Anthropic's mark, which clients of gateways write on the same parts. */
export function parseCache(part: Fields): CacheMark | undefined {
  const breakpoint = part.raw("prompt_cache_breakpoint");
  const control = part.fields("cache_control");
  if (control !== undefined) return parseCacheControl(control);
  return breakpoint === undefined ? undefined : { ttl: undefined };
}

export function parseCacheControl(fields: Fields): CacheMark {
  fields.oneOf("type", ["ephemeral"]);
  return { ttl: fields.oneOf("ttl", ["5m", "1h"]) };
}
