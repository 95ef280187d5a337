/** Determines the service of a host in Azure's public cloud, and the audience of its tokens. */

export type AzureHost =
  | { readonly kind: "arm"; readonly audience: string }
  /** `account`: of storage or a vault, whose place only the operator knows. */
  | { readonly kind: "blob" | "vault"; readonly audience: string; readonly account: string };

export const ARM_AUDIENCE = "https://management.azure.com/.default";
/** Hosts that issue tokens: intercepted so that requests to them can be refused. */
export const TOKEN_HOSTS: readonly string[] = [
  "login.microsoftonline.com",
  "login.windows.net",
  "sts.windows.net",
];

export function azureHost(host: string): AzureHost | undefined {
  if (host === "management.azure.com") return { kind: "arm", audience: ARM_AUDIENCE };
  // A zone's hosts have the zone before `blob`.
  const account = /^([a-z0-9]{3,24})\.(?:z[0-9]{1,2}\.)?blob\.core\.windows\.net$/.exec(host)?.[1];
  if (account !== undefined)
    return { kind: "blob", audience: "https://storage.azure.com/.default", account };
  const vault = /^([a-z][a-z0-9-]{1,22}[a-z0-9])\.vault\.azure\.net$/.exec(host)?.[1];
  return vault === undefined
    ? undefined
    : { kind: "vault", audience: "https://vault.azure.net/.default", account: vault };
}
