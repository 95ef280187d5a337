/** Google Cloud: access tokens of a service account or a federated identity, which are renewed. */
import {
  type ActionResolution,
  ConfigError,
  type Injection,
  InjectionError,
  type PluginContext,
  type ProviderInstance,
  type ProviderPlugin,
  type ServiceRequest,
} from "../contract.ts";
import { type FetchedToken, TokenRefresher } from "../token-refresher.ts";
import { exchangeExternalAccount, readExternalAccount } from "./external-account.ts";
import { wordDenial } from "./denial.ts";
import { googleHost } from "./hosts.ts";
import { resolve, UNREAD_CONTENT_TYPES, UNREAD_PATHS } from "./resolve.ts";
import type { BucketProjects } from "./resources.ts";
import { exchangeServiceAccount, readServiceAccount } from "./token.ts";

const MINUTE_MS = 60_000;
/** Requests to models contain images and sound. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;
const CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform";

export const plugin: ProviderPlugin = {
  providerName: "gcp",
  // Intercepted so that requests to them can be refused.
  defaultHosts: ["accounts.google.com", "metadata.google.internal"],
  hostPatterns: ["*.googleapis.com"],
  authTypes: {
    "service-account": { required: ["serviceAccount"], optional: [] },
    "external-account": { required: ["externalAccount"], optional: [] },
  },
  scopeKeys: { projects: "Ids and numbers of projects, as agents send them" },
  scopeIgnoresCase: false,
  configKeys: {
    bucketProjects:
      "Projects of buckets, which a request does not tell: bucket=project, apart by spaces",
    scopes: "OAuth2 scopes of the access token, apart by spaces; cloud-platform when left out",
  },
  bodies: [
    {
      hosts: [],
      exceptPaths: UNREAD_PATHS,
      exceptContentTypes: UNREAD_CONTENT_TYPES,
      methods: ["POST", "PUT", "PATCH", "DELETE"],
      paths: ["/*"],
      maxBytes: MAX_BODY_BYTES,
    },
  ],
  credentialHeaders: [
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-goog-api-key",
    "x-goog-iam-authority-selector",
    "x-goog-iam-authorization-token",
    "x-api-key",
  ],
  credentialQuery: [
    "access_token",
    "bearer_token",
    "key",
    "oauth_token",
    "$key",
    "$access_token",
    "$oauth_token",
  ],
  wordDenial: (_request, denial) => wordDenial(denial),
  create: (context) => new GcpInstance(context),
};

class GcpInstance implements ProviderInstance {
  readonly #binding: string;
  readonly #buckets: BucketProjects;
  readonly #token: TokenRefresher;

  constructor(context: PluginContext) {
    const { binding, clock, random, log } = context;
    this.#binding = binding;
    this.#buckets = readBuckets(context);
    this.#token = new TokenRefresher({
      binding,
      fetchToken: exchangeOf(context),
      maxAgeMs: 50 * MINUTE_MS,
      marginMs: 5 * MINUTE_MS,
      clock,
      random,
      log,
    });
  }

  resolveAction(request: ServiceRequest): ActionResolution {
    return resolve(request, this.#buckets);
  }

  async injectCredentials(request: ServiceRequest): Promise<Injection> {
    // Not even in audit mode: a token server would issue further credentials, and an unknown host
    // may belong to anybody.
    if (googleHost(request.host)?.kind !== "api")
      throw new InjectionError(`Provider ${this.#binding}: this host gets no credential`, 400);
    const token = await this.#token.current();
    return { set: [["authorization", `Bearer ${token.reveal()}`]], remove: [], setQuery: [] };
  }

  start(): Promise<void> {
    return this.#token.start();
  }

  stop(): Promise<void> {
    return this.#token.stop();
  }

  refreshToken(): Promise<void> {
    return this.#token.refresh();
  }
}

function exchangeOf(context: PluginContext): (signal: AbortSignal) => Promise<FetchedToken> {
  const scopes = (context.config["scopes"] ?? CLOUD_PLATFORM).trim().replace(/\s+/g, " ");
  if (
    !/^https:\/\/(?:www|mail)\.google(?:apis)?\.com\/[\w./-]*(?: https:\/\/(?:www|mail)\.google(?:apis)?\.com\/[\w./-]*)*$/.test(
      scopes,
    )
  ) {
    throw new ConfigError(
      `Provider ${context.binding}: config.scopes must be scopes such as ` +
        `${CLOUD_PLATFORM}, apart by spaces`,
    );
  }
  if (context.authType === "service-account") {
    const account = readServiceAccount(context);
    return (signal) => exchangeServiceAccount(context, account, scopes, signal);
  }
  if (context.authType !== "external-account")
    throw new ConfigError(
      `Provider ${context.binding}: auth.type of gcp is service-account or external-account`,
    );
  const account = readExternalAccount(context);
  return (signal) => exchangeExternalAccount(context, account, scopes, signal);
}

/** @throws ConfigError */
function readBuckets({ binding, config }: PluginContext): BucketProjects {
  const pairs = (config["bucketProjects"] ?? "").split(/\s+/).filter(Boolean);
  return new Map(
    pairs.map((pair) => {
      const [, bucket, project] =
        /^([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])=([a-z0-9][a-z0-9:.-]{1,62})$/.exec(pair) ?? [];
      if (bucket === undefined || project === undefined)
        throw new ConfigError(
          `Provider ${binding}: config.bucketProjects must be bucket=project, apart by spaces`,
        );
      return [bucket, project] as const;
    }),
  );
}
