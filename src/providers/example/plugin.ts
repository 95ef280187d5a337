/**
 * An example to copy: the plugin of a fictional service, a library at api.library.example, which wants an API key in the
 * header `x-library-key`. docs/providers/writing-a-plugin.md walks through it.
 */
import { Secret } from "../../platform/secret.ts";
import { ConfigError, NO_INJECTION, type Injection, type PluginContext, type ProviderInstance, type ProviderPlugin, type ServiceRequest } from "../contract.ts";
import { resolve } from "./resolve.ts";

export const plugin: ProviderPlugin = {
  providerName: "example",
  defaultHosts: ["api.library.example"],
  hostPatterns: [],
  authTypes: { "api-key": { required: ["token"], optional: [] } },
  scopeKeys: ["projects"],
  scopeIgnoresCase: false,
  configKeys: {},
  bodies: [],
  credentialHeaders: ["authorization", "cookie", "x-library-key"],
  credentialQuery: ["key"],
  create: (context) => new ExampleInstance(keyOf(context)),
};

class ExampleInstance implements ProviderInstance {
  readonly #key: Secret;

  constructor(key: Secret) {
    this.#key = key;
  }

  readonly resolveAction = resolve;

  injectCredentials(request: ServiceRequest): Injection {
    if (!plugin.defaultHosts.includes(request.host)) return NO_INJECTION;
    return { ...NO_INJECTION, set: [["x-library-key", this.#key.reveal()]] };
  }

  // An API key does not age: nothing to get, to renew or to end. A token that does: see token-refresher.ts.
  start(): Promise<void> {
    return Promise.resolve();
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }

  refreshToken(): Promise<void> {
    return Promise.resolve();
  }
}

/** A Secret that cannot work is an error now, not at the first request. */
function keyOf({ binding, secrets }: PluginContext): Secret {
  const key = secrets.get("token")?.reveal().trim() ?? "";
  if (!/^[\x21-\x7e]+$/.test(key)) throw new ConfigError(`Provider ${binding}: the Secret's key token must be the library's API key: it is empty, or holds spaces or other signs`);
  return new Secret(key);
}
