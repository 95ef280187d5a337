/** Discord: a bot's token. */
import type { Secret } from "../../platform/secret.ts";
import {
  type Injection,
  NO_INJECTION,
  type ProviderInstance,
  type ProviderPlugin,
  type ServiceRequest,
} from "../contract.ts";
import { readToken } from "../fixed-secret.ts";
import { BODIES } from "./reach.ts";
import { redactPath, resolveDiscord } from "./resolve.ts";

export const plugin: ProviderPlugin = {
  providerName: "discord",
  // Without the gateway (wss://gateway.discord.gg), whose token is in a message, and without
  // cdn.discordapp.com, which needs none.
  defaultHosts: ["discord.com"],
  hostPatterns: [],
  authTypes: { token: { required: ["token"], optional: [] } },
  scopeKeys: { channels: "Ids of channels; a thread is a channel of its own" },
  scopeIgnoresCase: false,
  configKeys: {},
  bodies: BODIES,
  credentialHeaders: ["authorization", "cookie"],
  credentialQuery: ["access_token"],
  redactPath,
  create: (context) =>
    new DiscordInstance(readToken(context, "token", "the bot's token, without `Bot `")),
};

class DiscordInstance implements ProviderInstance {
  readonly #token: Secret;

  constructor(token: Secret) {
    this.#token = token;
  }

  resolveAction(request: ServiceRequest): ReturnType<ProviderInstance["resolveAction"]> {
    return resolveDiscord(request).resolution;
  }

  injectCredentials(request: ServiceRequest): Injection {
    if (!resolveDiscord(request).authenticated) return NO_INJECTION;
    return { ...NO_INJECTION, set: [["authorization", `Bot ${this.#token.reveal()}`]] };
  }

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
