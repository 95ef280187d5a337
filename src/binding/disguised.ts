/**
 * Credentials under a name that is not quite theirs. The agent's own credentials come off by the
 * exact name (ProviderPlugin.credentialQuery, credentialHeaders), so that one that a lenient server
 * reads, and that does not come off, would go beside the real one or in its place.
 */
import type { ProviderPlugin, ServiceRequest } from "../providers/contract.ts";
import { folded, parameterNames, readingsOf } from "./parameter-names.ts";

/** Why the request cannot be forwarded; undefined where nothing is disguised. */
export function disguisedCredential(
  { query }: ServiceRequest,
  { credentialQuery }: Pick<ProviderPlugin, "credentialQuery">,
): string | undefined {
  const credentials = new Map(credentialQuery.map((name) => [folded(name), name]));
  for (const { raw, inside } of parameterNames(query)) {
    const readings = readingsOf(raw);
    if (readings === undefined)
      return "The query holds the name of a parameter that servers read differently.";
    for (const reading of readings) {
      const name = credentials.get(reading);
      if (name !== undefined && (inside || raw !== name))
        return `The query holds the parameter ${name}, a credential's, in another spelling. Leave it out: the credential is put on for you.`;
    }
  }
  return undefined;
}

/** Objects' own metadata, whose names are the client's. */
const METADATA = /^x-(?:amz|goog|ms)-meta-/;

/**
 * A header whose name has anything but letters, digits and hyphens. Many servers read `_`, and some
 * any other sign, as a hyphen: `x_api_key` and `transfer_encoding` would be headers that nobody
 * here looked at.
 */
export function oddHeader(headers: ReadonlyMap<string, string>): string | undefined {
  for (const name of headers.keys())
    if (!/^[a-z0-9-]+$/.test(name) && !METADATA.test(name)) return name;
  return undefined;
}
