/** Determines the API of a host. https://cloud.google.com/apis/docs/endpoints */
import { isKnownHost } from "./methods.ts";

export type GoogleHost =
  /** `host` as the table has it; `name` is the API's. */
  | { readonly kind: "api"; readonly host: string; readonly name: string }
  /** Issues credentials. */
  | { readonly kind: "tokens" };

/** Services whose responses are credentials, or can be converted into one. */
const TOKEN_SERVICES = new Set([
  "oauth2",
  "sts",
  "iamcredentials",
  "securetoken",
  "identitytoolkit",
  "oauth2accounts",
  "agentidentitycredentials",
]);

const LOCATION = "[a-z]+-[a-z]+[0-9]{1,2}|us|eu|global";
const plain = /^([a-z0-9]+)\.googleapis\.com$/;
const replicated = new RegExp(`^([a-z0-9]+)\\.(?:${LOCATION})\\.rep\\.googleapis\\.com$`);
const located = new RegExp(`^(?:${LOCATION})-([a-z0-9]+)\\.googleapis\\.com$`);

/** Returns undefined for a host of unknown use: a bucket's own host, a private copy of an API. */
export function googleHost(host: string): GoogleHost | undefined {
  if (host === "metadata.google.internal" || host === "accounts.google.com")
    return { kind: "tokens" };
  if (/^(?:[a-z0-9-]+\.)*mtls\.googleapis\.com$/.test(host)) return undefined;
  const name = (plain.exec(host) ?? replicated.exec(host) ?? located.exec(host))?.[1];
  if (name === undefined) return undefined;
  if (TOKEN_SERVICES.has(name)) return { kind: "tokens" };
  const canonical = `${name}.googleapis.com`;
  return isKnownHost(canonical) ? { kind: "api", host: canonical, name } : undefined;
}
