/**
 * Azure: Resource Manager, blob storage and Key Vault of the public cloud, each with tokens of its
 * own.
 */
import {
  type ActionResolution,
  ConfigError,
  type Injection,
  InjectionError,
  NO_INJECTION,
  type PluginContext,
  type ProviderInstance,
  type ProviderPlugin,
  type ServiceRequest,
} from "../contract.ts";
import { parseQuery, repeatedName } from "../raw-url.ts";
import { plainSegments } from "../url-path.ts";
import { TokenRefresher } from "../token-refresher.ts";
import { resolveArm } from "./arm.ts";
import { resolveBlob } from "./blob.ts";
import { wordDenial } from "./denial.ts";
import { ARM_AUDIENCE, azureHost, TOKEN_HOSTS } from "./hosts.ts";
import { type AzurePlaces, GROUP, SUBSCRIPTION } from "./resources.ts";
import { type Application, exchange, readApplication } from "./token.ts";
import { unresolved } from "./unresolved.ts";
import { resolveVault } from "./vault.ts";

const MINUTE_MS = 60_000;
/** Resource Manager allows half of it. */
const MAX_BODY_BYTES = 8 * 1024 * 1024;

export const plugin: ProviderPlugin = {
  providerName: "azure",
  defaultHosts: ["management.azure.com", ...TOKEN_HOSTS],
  hostPatterns: ["*.blob.core.windows.net", "*.vault.azure.net"],
  authTypes: {
    "client-secret": { required: ["tenantId", "clientId", "clientSecret"], optional: [] },
    "federated-token": { required: ["tenantId", "clientId"], optional: [] },
  },
  scopeKeys: {
    subscriptions: "Ids of subscriptions",
    resourceGroups: "Resource groups as subscription/group",
    containers: "Blob containers as account/container",
  },
  scopeIgnoresCase: true,
  configKeys: {
    places:
      "Where storage accounts, vaults and registries are, which their hosts do not tell: " +
      "name=subscription/group, apart by spaces",
    tokenFile:
      "File with the pod's token, for federated-token; where Azure's webhook puts it when left out",
  },
  bodies: [
    {
      hosts: ["management.azure.com"],
      methods: ["POST", "PUT", "PATCH", "DELETE"],
      paths: ["/*"],
      maxBytes: MAX_BODY_BYTES,
    },
  ],
  credentialHeaders: [
    "authorization",
    "cookie",
    "ocp-apim-subscription-key",
    "proxy-authorization",
    "x-api-key",
    "x-ms-authorization-auxiliary",
    "x-ms-copy-source-authorization",
  ],
  credentialQuery: ["access_token", "sig"],
  wordDenial,
  create: (context) => new AzureInstance(context),
};

class AzureInstance implements ProviderInstance {
  readonly #context: PluginContext;
  readonly #application: Application;
  readonly #places: AzurePlaces;
  /** By audience; all except Resource Manager's are obtained on first use. */
  readonly #tokens = new Map<string, TokenRefresher>();

  constructor(context: PluginContext) {
    this.#context = context;
    this.#application = readApplication(context);
    this.#places = readPlaces(context);
  }

  resolveAction(request: ServiceRequest): ActionResolution {
    const host = azureHost(request.host);
    if (TOKEN_HOSTS.includes(request.host))
      return unresolved(
        "This host answers with tokens, which an agent must not have",
        "Call the API itself: the proxy adds the token.",
      );
    if (host === undefined) return unresolved("This host is not a known service of Azure");
    const path = plainSegments(request.path, { slashes: host.kind === "blob" });
    const query = parseQuery(request.query);
    // The SDKs of Key Vault send an empty version: GET /secrets/name/.
    const endsInVersion = host.kind === "vault" && path?.segments.length === 2;
    if (path === undefined || query === undefined || (path.trailingSlash && !endsInVersion)) {
      return unresolved(
        "The path or the query can be read in more than one way",
        "Send it without //, dot segments, semicolons, plus signs, a slash at the end, and " +
          "escapes that are not needed.",
      );
    }
    if (repeatedName(query) !== undefined)
      return unresolved("A parameter stands twice in the query");
    if (query.some(([name]) => name.toLowerCase() === "sig"))
      return unresolved(
        "The URL is signed, by somebody who is not this proxy",
        "Call without a shared access signature.",
      );
    switch (host.kind) {
      case "arm":
        return resolveArm(request, path.segments, query, this.#places);
      case "blob":
        return resolveBlob(request, host.account, path.segments, query, this.#places);
      case "vault":
        return resolveVault(request.method, host.account, path.segments, this.#places);
    }
  }

  async injectCredentials(request: ServiceRequest): Promise<Injection> {
    const host = azureHost(request.host);
    if (host === undefined)
      throw new InjectionError(
        `Provider ${this.#context.binding}: this host gets no credential`,
        400,
      );
    if (host.kind === "vault" && isProbe(request)) return NO_INJECTION;
    const token = await this.#tokenFor(host.audience).current();
    const set: [string, string][] = [["authorization", `Bearer ${token.reveal()}`]];
    return { set, remove: [], setQuery: [] };
  }

  start(): Promise<void> {
    return this.#tokenFor(ARM_AUDIENCE).start();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#tokens.values()].map((token) => token.stop()));
  }

  async refreshToken(): Promise<void> {
    await Promise.all([...this.#tokens.values()].map((token) => token.refresh()));
  }

  #tokenFor(audience: string): TokenRefresher {
    const known = this.#tokens.get(audience);
    if (known !== undefined) return known;
    const { binding, clock, random, log } = this.#context;
    const fetchToken = (signal: AbortSignal): ReturnType<typeof exchange> =>
      exchange(this.#context, this.#application, audience, signal);
    const token = new TokenRefresher({
      binding,
      fetchToken,
      maxAgeMs: 45 * MINUTE_MS,
      marginMs: 5 * MINUTE_MS,
      clock,
      random,
      log,
    });
    this.#tokens.set(audience, token);
    return token;
  }
}

/**
 * Returns whether a write is the probe with which the SDKs of Key Vault begin: without a token and
 * without its body. It goes to the vault as it is, for the challenge that makes them send the body.
 * https://learn.microsoft.com/azure/key-vault/general/authentication-requests-and-responses
 */
function isProbe({ method, headers }: ServiceRequest): boolean {
  return (
    (method === "PUT" || method === "POST" || method === "PATCH") &&
    !headers.has("authorization") &&
    !headers.has("transfer-encoding") &&
    /^0*$/.test(headers.get("content-length") ?? "")
  );
}

/** @throws ConfigError */
function readPlaces({ binding, config }: PluginContext): AzurePlaces {
  return new Map(
    (config["places"] ?? "")
      .split(/\s+/)
      .filter(Boolean)
      .map((text) => {
        const [, name, subscription, group] =
          /^([a-z0-9-]{3,50})=([^/]{1,100})\/([^/]{1,100})$/.exec(text) ?? [];
        if (
          name === undefined ||
          !SUBSCRIPTION.test(subscription ?? "") ||
          !GROUP.test(group ?? "")
        ) {
          throw new ConfigError(
            `Provider ${binding}: config.places must be name=subscription/group, apart by ` +
              "spaces, with the subscription's id",
          );
        }
        return [name, `${subscription}/${group}`] as const;
      }),
  );
}
