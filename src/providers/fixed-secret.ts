/** A token that does not age, out of a Secret. */
import { Secret } from "../platform/secret.ts";
import { ConfigError, type PluginContext } from "./contract.ts";

/**
 * @param what for the message: what the key must hold
 * @throws ConfigError where it is empty, or could not stand in a header
 */
export function readToken({ binding, secrets }: PluginContext, key: string, what: string): Secret {
  const value = secrets.get(key)?.reveal().trim() ?? "";
  if (!/^[\x21-\x7e]+$/.test(value)) {
    throw new ConfigError(
      `Provider ${binding}: the Secret's key ${key} must be ${what}: it is empty, or holds spaces or other signs`,
    );
  }
  return new Secret(value);
}
