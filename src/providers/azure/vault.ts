/**
 * Key Vault: data actions of secrets, keys and certificates.
 * https://learn.microsoft.com/rest/api/keyvault/
 */
import type { ActionResolution } from "../contract.ts";
import { placeOf, type AzurePlaces } from "./resources.ts";
import { unresolved } from "./unresolved.ts";

/** Segments: `n` a name, `v` a version. */
const OPERATIONS: readonly (readonly [method: string, path: RegExp, action: string])[] = [
  ["GET", /^secrets$|^secrets\/[^/]+\/versions$/, "secrets/readMetadata/action"],
  ["GET", /^secrets\/[^/]+(?:\/[0-9a-f]{32})?$/, "secrets/getSecret/action"],
  ["PUT", /^secrets\/[^/]+$/, "secrets/setSecret/action"],
  ["PATCH", /^secrets\/[^/]+(?:\/[0-9a-f]{32})?$/, "secrets/update/action"],
  ["DELETE", /^secrets\/[^/]+$/, "secrets/delete"],
  ["GET", /^keys$|^keys\/[^/]+(?:\/versions|\/[0-9a-f]{32})?$/, "keys/read"],
  ["POST", /^keys\/[^/]+\/create$/, "keys/create/action"],
  ["PATCH", /^keys\/[^/]+(?:\/[0-9a-f]{32})?$/, "keys/update/action"],
  ["DELETE", /^keys\/[^/]+$/, "keys/delete"],
  ["POST", /^keys\/[^/]+\/[0-9a-f]{32}\/encrypt$/, "keys/encrypt/action"],
  ["POST", /^keys\/[^/]+\/[0-9a-f]{32}\/decrypt$/, "keys/decrypt/action"],
  ["POST", /^keys\/[^/]+\/[0-9a-f]{32}\/sign$/, "keys/sign/action"],
  ["POST", /^keys\/[^/]+\/[0-9a-f]{32}\/verify$/, "keys/verify/action"],
  ["POST", /^keys\/[^/]+\/[0-9a-f]{32}\/wrapkey$/, "keys/wrap/action"],
  ["POST", /^keys\/[^/]+\/[0-9a-f]{32}\/unwrapkey$/, "keys/unwrap/action"],
  [
    "GET",
    /^certificates$|^certificates\/[^/]+(?:\/versions|\/[0-9a-f]{32})?$/,
    "certificates/read",
  ],
];
const NAME = /^[A-Za-z0-9-]{1,127}$/;

export function resolveVault(
  method: string,
  vault: string,
  segments: readonly string[],
  places: AzurePlaces,
): ActionResolution {
  const path = segments.join("/");
  const found = segments.every((segment) => NAME.test(segment))
    ? OPERATIONS.find(([other, pattern]) => other === method && pattern.test(path))
    : undefined;
  if (found === undefined) return unresolved("This operation is not known of Key Vault");
  return {
    kind: "resolved",
    actions: [
      { action: `Microsoft.KeyVault/vaults/${found[2]}`, resources: placeOf(vault, places) },
    ],
  };
}
