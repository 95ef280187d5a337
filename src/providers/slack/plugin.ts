/** Slack: the Web API and files, with a bot's token or a rotating one. */
import type { Secret } from "../../platform/secret.ts";
import {
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
import { wordDenial } from "./denial.ts";
import { redactPath, resolveSlack } from "./resolve.ts";
import { RotatingToken } from "./rotating-token.ts";

const HOUR_MS = 3_600_000;
const MAX_BODY_BYTES = 1024 * 1024;

export const plugin: ProviderPlugin = {
  providerName: "slack",
  // Without hooks.slack.com, whose addresses are credentials, and without wss-primary.slack.com,
  // whose address apps.connections.open returns.
  defaultHosts: ["slack.com", "files.slack.com"],
  hostPatterns: [],
  authTypes: {
    "api-key": { required: ["token"], optional: [] },
    oauth2: { required: ["clientId", "clientSecret", "refreshToken"], optional: [] },
  },
  scopeKeys: { channels: "Ids of conversations, e.g. C0123456789" },
  scopeIgnoresCase: false,
  configKeys: {},
  bodies: [
    { hosts: ["slack.com"], methods: undefined, paths: ["/api/*"], maxBytes: MAX_BODY_BYTES },
  ],
  credentialHeaders: ["authorization", "cookie"],
  credentialQuery: ["token"],
  redactPath,
  wordDenial,
  create: (context) => new SlackInstance(tokenOf(context)),
};

class SlackInstance implements ProviderInstance {
  readonly #token: CredentialSource<Secret>;

  constructor(token: CredentialSource<Secret>) {
    this.#token = token;
  }

  resolveAction(request: ServiceRequest): ReturnType<ProviderInstance["resolveAction"]> {
    return resolveSlack(request).resolution;
  }

  async injectCredentials(request: ServiceRequest): Promise<Injection> {
    if (!resolveSlack(request).authenticated) return NO_INJECTION;
    return {
      ...NO_INJECTION,
      set: [["authorization", `Bearer ${(await this.#token.current()).reveal()}`]],
    };
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

function tokenOf(context: PluginContext): CredentialSource<Secret> {
  if (context.authType === "api-key")
    return fixedCredential(readToken(context, "token", "a bot's token, e.g. xoxb-..."));
  if (context.authType !== "oauth2")
    throw new ConfigError(`Provider ${context.binding}: auth.type of slack is api-key or oauth2`);
  const credential = {
    clientId: readToken(context, "clientId", "the app's client id"),
    clientSecret: readToken(context, "clientSecret", "the app's client secret"),
    refreshToken: readToken(context, "refreshToken", "a refresh token, e.g. xoxe-1-..."),
  };
  const rotating = new RotatingToken(context, credential, HOUR_MS);
  return new TokenRefresher({
    binding: context.binding,
    fetchToken: (signal) => rotating.fetch(signal),
    maxAgeMs: 11 * HOUR_MS,
    marginMs: HOUR_MS,
    clock: context.clock,
    random: context.random,
    log: context.log,
  });
}
