/**
 * Detects credentials under altered names. The agent's own credentials are removed by their exact
 * names (ProviderPlugin.credentialQuery, credentialHeaders). A credential under another name that a
 * lenient server accepts would not be removed, and would be forwarded beside the real one or
 * instead of it.
 */
import type { ProviderPlugin, ServiceRequest } from "../providers/contract.ts";
import { folded, parameterNames, readingsOf } from "./parameter-names.ts";

/**
 * Returns the reason why the request cannot be forwarded; undefined if no credential is disguised.
 */
export function disguisedCredential(
  { query }: ServiceRequest,
  { credentialQuery }: Pick<ProviderPlugin, "credentialQuery">,
): string | undefined {
  const credentials = new Map(credentialQuery.map((name) => [folded(name), name]));
  for (const { raw, inside } of parameterNames(query)) {
    const readings = readingsOf(raw);
    if (readings === undefined)
      return "The query contains a parameter whose name servers interpret differently.";
    for (const reading of readings) {
      const name = credentials.get(reading);
      if (name !== undefined && (inside || raw !== name))
        return (
          `The query holds the parameter ${name}, a credential in another spelling. Omit it: ` +
          "the proxy adds the credential."
        );
    }
  }
  return undefined;
}

/** Headers of object metadata, whose names the client chooses. */
const METADATA = /^x-(?:amz|goog|ms)-meta-/;

/**
 * Returns a header whose name contains anything but letters, digits and hyphens. Many servers treat
 * `_`, and some treat any other character, as a hyphen: nothing here would have checked `x_api_key`
 * and `transfer_encoding`.
 */
export function oddHeader(headers: ReadonlyMap<string, string>): string | undefined {
  for (const name of headers.keys())
    if (!/^[a-z0-9-]+$/.test(name) && !METADATA.test(name)) return name;
  return undefined;
}
