/** Reads a token that does not expire from a Secret. */
import { Secret } from "../platform/secret.ts";
import { ConfigError, type PluginContext } from "./contract.ts";

/**
 * @param what required content of the key, for the message
 * @throws ConfigError if it is empty, or is not valid in a header
 */
export function readToken({ binding, secrets }: PluginContext, key: string, what: string): Secret {
  const value = secrets.get(key)?.reveal().trim() ?? "";
  if (!/^[\x21-\x7e]+$/.test(value)) {
    throw new ConfigError(
      `Provider ${binding}: the Secret's key ${key} must be ${what}: it is empty, or holds ` +
        "spaces or other signs",
    );
  }
  return new Secret(value);
}
