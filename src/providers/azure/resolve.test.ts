import { describe, expect, test } from "vitest";
import type { ServiceRequest } from "../contract.ts";
import { context, request } from "../testing.ts";
import { IDS, sample, SUBSCRIPTION } from "./contract-sample.ts";
import { plugin } from "./plugin.ts";

const azure = plugin.create(
  context({ authType: "client-secret", ...sample.auth["client-secret"] }),
);
const ARM = "https://management.azure.com";
const SUB = `${ARM}/subscriptions/${SUBSCRIPTION}`;
const GROUP = `${SUB}/resourceGroups/Data`;
const BLOB = "https://reports.blob.core.windows.net";

function told(call: ServiceRequest): readonly string[] {
  const resolution = azure.resolveAction(call);
  if (resolution.kind === "unresolved") return [`(${resolution.reason})`];
  return resolution.actions.map(({ action, resources }) =>
    [
      action,
      ...resources.map((resource) =>
        resource.kind === "scoped" ? `${resource.key}=${resource.value}` : resource.kind,
      ),
    ].join(" "),
  );
}

const refused = (line: string, headers: Record<string, string> = {}): boolean =>
  azure.resolveAction(request(line, { headers })).kind === "unresolved";
const IN_GROUP = `subscriptions=${SUBSCRIPTION} resourceGroups=${SUBSCRIPTION}/data`;
const IN_SUB = `subscriptions=${SUBSCRIPTION}`;

describe("Resource Manager", () => {
  test.each([
    [
      `GET ${GROUP}/providers/Microsoft.Compute/virtualMachines/vm?api-version=2024-07-01`,
      `Microsoft.Compute/virtualMachines/read ${IN_GROUP}`,
    ],
    [
      `GET ${GROUP}/providers/Microsoft.Compute/virtualMachines`,
      `Microsoft.Compute/virtualMachines/read ${IN_GROUP}`,
    ],
    [
      `PUT ${GROUP}/providers/Microsoft.Compute/virtualMachines/vm`,
      `Microsoft.Compute/virtualMachines/write ${IN_GROUP}`,
    ],
    [
      `PATCH ${GROUP}/providers/Microsoft.Compute/virtualMachines/vm/extensions/e`,
      `Microsoft.Compute/virtualMachines/extensions/write ${IN_GROUP}`,
    ],
    [
      `DELETE ${GROUP}/providers/Microsoft.Compute/virtualMachines/vm`,
      `Microsoft.Compute/virtualMachines/delete ${IN_GROUP}`,
    ],
    [
      `POST ${GROUP}/providers/Microsoft.Compute/virtualMachines/vm/start`,
      `Microsoft.Compute/virtualMachines/start/action ${IN_GROUP}`,
    ],
    [
      `PUT ${GROUP}/providers/Microsoft.Compute/virtualMachines/vm/providers/Microsoft.Authorization/locks/l`,
      `Microsoft.Authorization/locks/write ${IN_GROUP}`,
    ],
    [
      `GET ${SUB}/providers/Microsoft.Compute/virtualMachines`,
      `Microsoft.Compute/virtualMachines/read ${IN_SUB}`,
    ],
    [`GET ${SUB}`, `Microsoft.Resources/subscriptions/read ${IN_SUB}`],
    [`GET ${ARM}/subscriptions`, "Microsoft.Resources/subscriptions/read unscopable"],
    [
      `GET ${SUB}/resourceGroups`,
      `Microsoft.Resources/subscriptions/resourceGroups/read ${IN_SUB}`,
    ],
    [`DELETE ${GROUP}`, `Microsoft.Resources/subscriptions/resourceGroups/delete ${IN_GROUP}`],
    [
      `PUT ${SUB.toUpperCase().replace("HTTPS://MANAGEMENT.AZURE.COM", ARM)}/RESOURCEGROUPS/DATA`,
      `Microsoft.Resources/subscriptions/resourceGroups/write ${IN_GROUP}`,
    ],
    [
      `GET ${SUB}/resources?$filter=x`,
      `Microsoft.Resources/subscriptions/resources/read ${IN_SUB}`,
    ],
    [`GET ${SUB}/providers`, `Microsoft.Resources/subscriptions/providers/read ${IN_SUB}`],
    [
      `POST ${GROUP}/exportTemplate`,
      `Microsoft.Resources/subscriptions/resourceGroups/exportTemplate/action ${IN_GROUP}`,
    ],
    [
      `POST ${GROUP}/moveResources`,
      `Microsoft.Resources/subscriptions/resourceGroups/moveResources/action ${IN_GROUP} unscopable`,
    ],
    [
      `PUT ${GROUP}/providers/Microsoft.Resources/deployments/d`,
      `Microsoft.Resources/deployments/write ${IN_GROUP} unscopable`,
    ],
    [
      `GET ${GROUP}/providers/Microsoft.Resources/deployments/d`,
      `Microsoft.Resources/deployments/read ${IN_GROUP}`,
    ],
    [
      `GET ${ARM}/providers/Microsoft.Management/managementGroups/m`,
      "Microsoft.Management/managementGroups/read unscopable",
    ],
    [`GET ${ARM}/tenants`, "Microsoft.Resources/tenants/read unscopable"],
    [`GET ${ARM}/subscriptions/not-an-id`, "Microsoft.Resources/subscriptions/read unscopable"],
    [
      `GET ${SUB}/resourceGroups/a*`,
      "Microsoft.Resources/subscriptions/resourceGroups/read unscopable",
    ],
  ])("%s", (line, expected) => {
    expect(told(request(line))).toEqual([expected]);
  });

  test.each([
    "listKeys",
    "listAccountSas",
    "ListServiceSas",
    "regenerateKey",
    "listCredentials",
    "listClusterAdminCredential",
    "listConnectionStrings",
    "listSecrets",
    "generateCredentials",
    "beginGetAccess",
    "publishxml",
  ])("%s answers with credentials", (action) => {
    expect(
      refused(`POST ${GROUP}/providers/Microsoft.Storage/storageAccounts/reports/${action}`),
    ).toBe(true);
  });

  test.each([
    `GET ${GROUP}//providers/Microsoft.Compute/virtualMachines`,
    `GET ${SUB}/resourceGroups/../providers/Microsoft.Compute/virtualMachines`,
    `GET ${SUB}/resourceGroups/%2e%2e/x`,
    `GET ${GROUP}%2Fx`,
    `GET ${GROUP};x`,
    `GET ${GROUP}%5C`,
    `GET ${GROUP}%00`,
    `GET ${GROUP}/`,
    `GET ${SUB}/resourceGr%6Fups/data`,
    `GET ${GROUP}?api-version=1&api-version=2`,
    `GET ${GROUP}?a=b;c`,
    `PUT ${GROUP}/providers/Microsoft.Compute/virtualMachines`,
    `POST ${GROUP}/providers/Microsoft.Compute/virtualMachines/vm`,
    `DELETE ${SUB}/resourceGroups`,
    `PUT ${GROUP}/providers/Microsoft.Compute`,
    `POST ${ARM}/batch?api-version=2020-06-01`,
    `GET ${ARM}/`,
    `get ${GROUP}`,
    `GET ${SUB}/providers/Microsoft.X/y/subscriptions/z`,
    `GET ${SUB}/providers/Microsoft.X/resourceGroups/z`,
    `GET ${GROUP}/providers/evil/x/y`,
    `GET ${ARM.replace("management", "evil.management")}/subscriptions`,
  ])("%s is refused", (line) => {
    expect(refused(line)).toBe(true);
  });

  test("another method by a header is refused", () => {
    expect(refused(`GET ${GROUP}`, { "x-http-method-override": "DELETE" })).toBe(true);
  });
});

describe("what answers with tokens is refused", () => {
  test.each([
    `https://login.microsoftonline.com/${IDS.tenantId}/oauth2/v2.0/token`,
    "https://login.windows.net/x",
    "https://sts.windows.net/x",
    "https://graph.microsoft.com/v1.0/me",
    "https://management.core.windows.net/x",
  ])("%s", (url) => {
    expect(refused(`POST ${url}`)).toBe(true);
  });

  test("a user's delegation key", () => {
    expect(refused(`POST ${BLOB}/?restype=service&comp=userdelegationkey`)).toBe(true);
  });
});

describe("blobs", () => {
  const base = "Microsoft.Storage/storageAccounts/blobServices/containers";
  test.each([
    [`GET ${BLOB}/con/a/b%20c.csv`, `${base}/blobs/read ${IN_GROUP}`],
    [`HEAD ${BLOB}/con/a`, `${base}/blobs/read ${IN_GROUP}`],
    [`PUT ${BLOB}/con/a?comp=block&blockid=x`, `${base}/blobs/write ${IN_GROUP}`],
    [`DELETE ${BLOB}/con/a`, `${base}/blobs/delete ${IN_GROUP}`],
    [`GET ${BLOB}/?comp=list`, `${base}/read ${IN_GROUP}`],
    [`GET ${BLOB}/con?restype=container&comp=list`, `${base}/blobs/read ${IN_GROUP}`],
    [`PUT ${BLOB}/con?restype=container&comp=acl`, `${base}/setAcl/action ${IN_GROUP}`],
    ["GET https://others.blob.core.windows.net/con/a", `${base}/blobs/read unscopable`],
  ])("%s", (line, expected) => {
    expect(told(request(line))).toEqual([expected]);
  });

  test("one version, tags and a copy need more", () => {
    expect(told(request(`DELETE ${BLOB}/con/a?versionid=1`))).toHaveLength(2);
    expect(told(request(`PUT ${BLOB}/con/a`, { headers: { "x-ms-tags": "a=b" } }))).toContain(
      `${base}/blobs/tags/write ${IN_GROUP}`,
    );
    expect(
      told(
        request(`PUT ${BLOB}/con/a`, {
          headers: { "x-ms-copy-source": "https://others.blob.core.windows.net/con/b" },
        }),
      ),
    ).toEqual([`${base}/blobs/write ${IN_GROUP}`, `${base}/blobs/read unscopable`]);
  });

  test.each([
    "http://reports.blob.core.windows.net/con/a",
    "https://evil.example/con/a",
    "https://reports.blob.core.windows.net/con",
    "https://reports.blob.core.windows.net/con/../other/a",
    "https://reports.blob.core.windows.net/con/a?sig=x",
    "https://reports.blob.core.windows.net@evil.example/con/a",
    "https://reports.blob.core.windows.net/con/a, https://others.blob.core.windows.net/con/b",
  ])("a copy from %s is refused", (source) => {
    expect(refused(`PUT ${BLOB}/con/a`, { "x-ms-copy-source": source })).toBe(true);
  });

  test.each([
    `GET ${BLOB}/con`,
    `GET ${BLOB}/con/a?comp=unknown`,
    `GET ${BLOB}/con/a?comp=list&comp=tags`,
    `GET ${BLOB}/con/a?Comp=tags`,
    `GET ${BLOB}/con/a?sig=x`,
    `GET ${BLOB}/con/a?s%69g=x`,
    `GET ${BLOB}//con/a`,
    `GET ${BLOB}/con/../other/a`,
    `GET ${BLOB}/con/a%2F..%2Fb`,
    `GET ${BLOB}/CON/a`,
    `POST ${BLOB}/?comp=batch`,
    `GET ${BLOB}/con/constructor?comp=constructor`,
    "GET https://a.b.blob.core.windows.net/con/a",
    "GET https://reports.dfs.core.windows.net/con/a",
  ])("%s is refused", (line) => {
    expect(refused(line)).toBe(true);
  });
});

describe("vaults", () => {
  const base = "Microsoft.KeyVault/vaults";
  const version = "0123456789abcdef0123456789abcdef";
  test.each([
    [
      "GET https://vault-1.vault.azure.net/secrets/db?api-version=7.4",
      `${base}/secrets/getSecret/action ${IN_GROUP}`,
    ],
    [
      `GET https://vault-1.vault.azure.net/secrets/db/${version}`,
      `${base}/secrets/getSecret/action ${IN_GROUP}`,
    ],
    [
      "GET https://vault-1.vault.azure.net/secrets",
      `${base}/secrets/readMetadata/action ${IN_GROUP}`,
    ],
    [
      "GET https://vault-1.vault.azure.net/secrets/db/versions",
      `${base}/secrets/readMetadata/action ${IN_GROUP}`,
    ],
    [
      "PUT https://vault-1.vault.azure.net/secrets/db",
      `${base}/secrets/setSecret/action ${IN_GROUP}`,
    ],
    [
      `POST https://vault-1.vault.azure.net/keys/k/${version}/unwrapkey`,
      `${base}/keys/unwrap/action ${IN_GROUP}`,
    ],
    [
      "GET https://others.vault.azure.net/secrets/db",
      `${base}/secrets/getSecret/action unscopable`,
    ],
  ])("%s", (line, expected) => {
    expect(told(request(line))).toEqual([expected]);
  });

  test.each([
    "POST https://vault-1.vault.azure.net/secrets/db/backup",
    "GET https://vault-1.vault.azure.net/secrets/db/../x",
    "GET https://vault-1.vault.azure.net/secrets//db",
    "GET https://vault-1.vault.azure.net/Secrets/db",
    "GET https://vault-1.vault.azure.net/secrets/d%2Fb",
    "GET https://x.vault-1.vault.azure.net/secrets/db",
    "PATCH https://vault-1.vault.azure.net/certificates/c",
  ])("%s is refused", (line) => {
    expect(refused(line)).toBe(true);
  });
});
