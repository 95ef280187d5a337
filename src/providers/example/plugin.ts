/**
 * An example to copy: the plugin of a fictional service, a library at api.library.example, which
 * requires an API key in the header `x-library-key`. docs/providers/writing-a-plugin.md walks
 * through it.
 */
import type { Secret } from "../../platform/secret.ts";
import {
  NO_INJECTION,
  type Injection,
  type ProviderInstance,
  type ProviderPlugin,
  type ServiceRequest,
} from "../contract.ts";
import { readToken } from "../fixed-secret.ts";
import { resolve } from "./resolve.ts";

export const plugin: ProviderPlugin = {
  providerName: "example",
  defaultHosts: ["api.library.example"],
  hostPatterns: [],
  authTypes: { "api-key": { required: ["token"], optional: [] } },
  scopeKeys: { projects: "Names of libraries" },
  scopeIgnoresCase: false,
  configKeys: {},
  bodies: [],
  credentialHeaders: ["authorization", "cookie", "x-library-key"],
  credentialQuery: ["key"],
  create: (context) => new ExampleInstance(readToken(context, "token", "the library's API key")),
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

  // An API key does not expire: nothing to obtain, renew or end. For an expiring token, see
  // token-refresher.ts.
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
