/**
 * GitHub: REST, GraphQL, git over HTTPS, uploads and raw files; a personal access token, or a
 * GitHub App's installation.
 */
import type { Secret } from "../../platform/secret.ts";
import {
  type ActionResolution,
  ConfigError,
  type Injection,
  NO_INJECTION,
  type PluginContext,
  type ProviderInstance,
  type ProviderPlugin,
  type ServiceRequest,
} from "../contract.ts";
import { type CredentialSource, fixedCredential } from "../credential-source.ts";
import { readToken } from "../fixed-secret.ts";
import { TokenRefresher } from "../token-refresher.ts";
import { fetchInstallationToken, readAppCredential } from "./app-token.ts";
import { wordDenial } from "./denial.ts";
import { resolveFiles, resolveGit } from "./git.ts";
import { resolveGraphql } from "./graphql/resolve.ts";
import { apiBaseOf, type Hosts, hostsOf, PUBLIC_HOSTS, type GitHubSurface } from "./hosts.ts";
import { LFS_BATCH_PATH } from "./lfs.ts";
import { bodyRules } from "./rest-body.ts";
import { resolveRest } from "./rest.ts";
import { unresolved } from "./unresolved.ts";
import { resolveUpload } from "./uploads.ts";

const MINUTE_MS = 60_000;
const MAX_BODY_BYTES = 1024 * 1024;

export const plugin: ProviderPlugin = {
  providerName: "github",
  defaultHosts: PUBLIC_HOSTS,
  hostPatterns: [],
  hostsFor: ({ host }) =>
    host === undefined ? undefined : [...(hostsOf(host.toLowerCase())?.keys() ?? [])],
  authTypes: {
    token: { required: ["token"], optional: [] },
    app: { required: ["appId", "installationId", "privateKey"], optional: [] },
  },
  wordDenial,
  scopeKeys: { repositories: "Repositories as owner/name" },
  scopeIgnoresCase: true,
  configKeys: {
    host: "Host of GitHub Enterprise (octocorp.ghe.com, or a server's own), instead of github.com",
  },
  bodies: [
    { hosts: [], methods: ["POST"], paths: ["/graphql", "/api/graphql"], maxBytes: MAX_BODY_BYTES },
    { hosts: [], methods: ["POST"], paths: [LFS_BATCH_PATH], maxBytes: MAX_BODY_BYTES },
    ...bodyRules(MAX_BODY_BYTES),
  ],
  credentialHeaders: [
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-api-key",
    "x-github-otp",
  ],
  credentialQuery: ["access_token", "client_id", "client_secret", "token"],
  create(context) {
    const host = context.config["host"]?.toLowerCase();
    const hosts = hostsOf(host);
    if (hosts === undefined) {
      throw new ConfigError(
        `Provider ${context.binding}: config.host must be the host of GitHub Enterprise, ` +
          "e.g. octocorp.ghe.com; leave it out for github.com",
      );
    }
    return new GithubInstance(hosts, tokenOf(context, apiBaseOf(host)));
  },
};

class GithubInstance implements ProviderInstance {
  readonly #hosts: Hosts;
  readonly #token: CredentialSource<Secret>;

  constructor(hosts: Hosts, token: CredentialSource<Secret>) {
    this.#hosts = hosts;
    this.#token = token;
  }

  resolveAction(request: ServiceRequest): ActionResolution {
    const surface = this.#surface(request);
    switch (surface?.kind) {
      case undefined:
        return unresolved("This host does not belong to the binding");
      case "git":
        return resolveGit(request).resolution;
      case "files":
        return resolveFiles(request);
      case "uploads":
        return resolveUpload(request, request.path.slice(surface.prefix.length));
      case "api":
        if (request.path === surface.graphqlPath) return resolveGraphql(request);
        return resolveRest(request, request.path.slice(surface.prefix.length));
    }
  }

  async injectCredentials(request: ServiceRequest): Promise<Injection> {
    const surface = this.#surface(request);
    if (surface === undefined || (surface.kind === "git" && !resolveGit(request).authenticated))
      return NO_INJECTION;
    const token = (await this.#token.current()).reveal();
    return { ...NO_INJECTION, set: [["authorization", authorization(surface, token)]] };
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

  #surface(request: ServiceRequest): GitHubSurface | undefined {
    return this.#hosts.get(request.host)?.find((surface) => {
      if (surface.kind === "api")
        return (
          request.path === surface.graphqlPath || request.path.startsWith(`${surface.prefix}/`)
        );
      return surface.kind !== "uploads" || request.path.startsWith(`${surface.prefix}/`);
    });
  }
}

/** Git's host expects Basic credentials, with this exact user name for tokens of an App. */
function authorization(surface: GitHubSurface, token: string): string {
  if (surface.kind === "git")
    return `Basic ${Buffer.from(`x-access-token:${token}`).toString("base64")}`;
  return surface.kind === "files" ? `token ${token}` : `Bearer ${token}`;
}

function tokenOf(context: PluginContext, apiBase: string): CredentialSource<Secret> {
  if (context.authType === "token")
    return fixedCredential(readToken(context, "token", "one token, e.g. github_pat_..."));
  if (context.authType !== "app")
    throw new ConfigError(`Provider ${context.binding}: auth.type of github is token or app`);
  const credential = readAppCredential(context);
  return new TokenRefresher({
    binding: context.binding,
    fetchToken: (signal) => fetchInstallationToken(context, apiBase, credential, signal),
    maxAgeMs: 50 * MINUTE_MS,
    marginMs: 10 * MINUTE_MS,
    clock: context.clock,
    random: context.random,
    log: context.log,
  });
}
