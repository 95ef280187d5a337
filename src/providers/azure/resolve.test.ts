import { describe, expect, test } from "vitest";
import { compileScope } from "../../binding/scope.ts";
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
  if (resolution.kind !== "resolved") return [`(${resolution.reason})`];
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
const IN_CONTAINER = `${IN_GROUP} containers=reports/con`;
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
      "PUT " +
        `${GROUP}/providers/Microsoft.Compute/virtualMachines/vm/providers/Microsoft.` +
        "Authorization/locks/l",
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
      `Microsoft.Resources/subscriptions/resourceGroups/moveResources/action ${IN_GROUP} ` +
        "unscopable",
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
});

describe("what a body names is judged", () => {
  const OTHER = "99999999-1111-2222-3333-444444444444";
  const VM = `PUT ${GROUP}/providers/Microsoft.Compute/virtualMachines/vm`;
  const JSON_TYPE = { "content-type": "application/json; charset=utf-8" };
  const besides = (
    body: object | string,
    line = VM,
    headers: Readonly<Record<string, string>> = JSON_TYPE,
  ): string => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const [found = ""] = told(request(line, { headers, body: text }));
    return found.split(" ").slice(1).join(" ").replace(IN_GROUP, "").trim();
  };
  const id = (subscription: string, group: string): string =>
    `/subscriptions/${subscription}/resourceGroups/${group}/providers/Microsoft.Compute/disks/d`;
  const secret = `subscriptions=${OTHER} resourceGroups=${OTHER}/secret`;

  test.each<[object | string, string]>([
    [{ properties: { disk: { id: id(SUBSCRIPTION, "DATA") } } }, ""],
    [{ disk: { id: id(SUBSCRIPTION, "secret") } }, `resourceGroups=${SUBSCRIPTION}/secret`],
    [{ disk: { id: id(OTHER, "secret") } }, secret],
    [{ disk: { id: id(OTHER, "secret").toUpperCase() } }, secret],
    [{ disk: { id: id(OTHER, "secret").replaceAll("/", "%2F") } }, secret],
    [{ disk: { id: ` ${id(OTHER, "secret")}` } }, secret],
    [
      { disk: { id: id(SUBSCRIPTION, "secret").replaceAll("/", "//") } },
      `resourceGroups=${SUBSCRIPTION}/secret`,
    ],
    [{ disk: { id: `https://management.azure.com${id(OTHER, "secret")}?x=1` } }, secret],
    [{ identity: { userAssignedIdentities: { [id(OTHER, "secret")]: {} } } }, secret],
    [
      { roleDefinitionId: `/subscriptions/${OTHER}/providers/Microsoft.Authorization/x/y` },
      `subscriptions=${OTHER} resourceGroups=${OTHER}/*`,
    ],
    [
      { roleDefinitionId: `/subscriptions/${SUBSCRIPTION}/providers/Microsoft.Authorization/x/y` },
      "",
    ],
    [{ target: { subscriptionId: OTHER, resourceGroupName: "secret" } }, secret],
    [{ target: { resourceGroup: "secret" } }, `resourceGroups=${SUBSCRIPTION}/secret`],
    [{ sourceUri: "https://reports.blob.core.windows.net/vhds/a.vhd" }, ""],
    [{ sourceUri: "https://others.blob.core.windows.net/vhds/a.vhd" }, "unscopable"],
    [{ sourceUri: "https://others.z12.blob.core.windows.net/vhds/a.vhd" }, "unscopable"],
    [{ secretUrl: "https://vault-1.vault.azure.net/secrets/a/1" }, ""],
    [{ secretUrl: "https://others.vault.azure.net/secrets/a/1" }, "unscopable"],
    [{ image: "DOCKER|others.azurecr.io/app:1" }, "unscopable"],
    [{ scope: "/providers/Microsoft.Management/managementGroups/m" }, "unscopable"],
    [{ id: "/subscriptions/not-an-id/resourceGroups/x" }, "unscopable"],
    [{ description: "see /subscriptions/x in the docs" }, ""],
    ['{"a":1,"a":2}', "unscopable"],
    ["{", "unscopable"],
    [{}, ""],
  ])("%j names %s", (body, expected) => {
    expect(besides(body)).toBe(expected);
  });

  test.each([
    {},
    { "content-type": "text/plain" },
    { "content-type": "application/json", "content-encoding": "gzip" },
  ])("a body that is declared as %j cannot be judged", (headers) => {
    expect(besides({}, VM, headers)).toBe("unscopable");
  });

  test("names without end are too many, and cost time in proportion", () => {
    const ids = Array.from({ length: 50_000 }, (_, n) => id(SUBSCRIPTION, `g${n}`));
    expect(besides({ ids })).toBe("unscopable");
    expect(besides({ a: "a-".repeat(500_000), b: "subscriptions/".repeat(100_000) })).toBe(
      "unscopable",
    );
  });

  test.each([
    `POST ${GROUP}/providers/Microsoft.OperationalInsights/workspaces/w/query`,
    `GET ${GROUP}/providers/Microsoft.OperationalInsights/workspaces/w/api/query`,
    `GET ${SUB}/providers/Microsoft.Compute/locations/l/sharedGalleries/g`,
    `PUT ${GROUP}/providers/Microsoft.X/y/z/providers/Microsoft.Resources/links/l`,
    `GET ${GROUP}/providers/Microsoft.X/y/z` +
      `?targetResourceId=${encodeURIComponent("/subscriptions/x")}`,
  ])("%s reaches further", (line) => {
    expect(told(request(line)).join()).toContain("unscopable");
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
    [`GET ${BLOB}/con/a/b%20c.csv`, `${base}/blobs/read ${IN_CONTAINER}`],
    [`HEAD ${BLOB}/con/a`, `${base}/blobs/read ${IN_CONTAINER}`],
    [`PUT ${BLOB}/con/a?comp=block&blockid=x`, `${base}/blobs/write ${IN_CONTAINER}`],
    [`DELETE ${BLOB}/con/a`, `${base}/blobs/delete ${IN_CONTAINER}`],
    [`GET ${BLOB}/?comp=list`, `${base}/read ${IN_GROUP}`],
    [`GET ${BLOB}/con?restype=container&comp=list`, `${base}/blobs/read ${IN_CONTAINER}`],
    [`PUT ${BLOB}/con?restype=container&comp=acl`, `${base}/setAcl/action ${IN_CONTAINER}`],
    [`DELETE ${BLOB}/con?restype=container`, `${base}/delete ${IN_CONTAINER}`],
    [`POST ${BLOB}/con/a?comp=query`, `${base}/blobs/read ${IN_CONTAINER}`],
    [`GET ${BLOB}/con/a?comp=tags`, `${base}/blobs/tags/read ${IN_CONTAINER}`],
    [
      `GET ${BLOB}/?restype=service&comp=stats`,
      `Microsoft.Storage/storageAccounts/blobServices/read ${IN_GROUP}`,
    ],
    [`GET ${BLOB}/$web/a`, `${base}/blobs/read ${IN_GROUP} containers=reports/$web`],
    [
      "GET https://others.blob.core.windows.net/con/a",
      `${base}/blobs/read unscopable containers=others/con`,
    ],
  ])("%s", (line, expected) => {
    expect(told(request(line))).toEqual([expected]);
  });

  test("one version, tags and a copy need more", () => {
    const deleted = `${base}/blobs/delete ${IN_CONTAINER}`;
    const version = `${base}/blobs/deleteBlobVersion/action ${IN_CONTAINER}`;
    const forever = `${base}/blobs/permanentDelete/action ${IN_CONTAINER}`;
    expect(told(request(`DELETE ${BLOB}/con/a?versionid=1`))).toEqual([deleted, version]);
    expect(told(request(`DELETE ${BLOB}/con/a?deletetype=permanent&versionid=1`))).toEqual([
      deleted,
      version,
      forever,
    ]);
    // The whole container is another action; a version that is read is none.
    expect(told(request(`GET ${BLOB}/con/a?versionid=1`))).toHaveLength(1);
    expect(told(request(`GET ${BLOB}/con/a?deletetype=permanent`))).toHaveLength(1);
    expect(told(request(`PUT ${BLOB}/con/a`, { headers: { "x-ms-tags": "a=b" } }))).toContain(
      `${base}/blobs/tags/write ${IN_CONTAINER}`,
    );
    expect(
      told(
        request(`PUT ${BLOB}/con/a`, {
          headers: { "x-ms-copy-source": "https://others.blob.core.windows.net/con/b" },
        }),
      ),
    ).toEqual([
      `${base}/blobs/write ${IN_CONTAINER}`,
      `${base}/blobs/read unscopable containers=others/con`,
    ]);
  });

  const scopeOf = (scope: object) => compileScope(scope, plugin);
  const verdicts = (call: ServiceRequest, scope: object): readonly string[] => {
    const resolution = azure.resolveAction(call);
    return resolution.kind === "unresolved"
      ? ["unresolved"]
      : resolution.actions.map(({ resources }) => scopeOf(scope)(resources).kind);
  };
  const copyOf = (from: string): ServiceRequest =>
    request(`PUT ${BLOB}/con/a`, {
      headers: { "x-ms-copy-source": `https://reports.blob.core.windows.net/${from}` },
    });

  test("a container is a scope of its own, for the source of a copy too", () => {
    const scope = { containers: ["reports/con", "others/*"] };
    expect(verdicts(request(`GET ${BLOB}/con/a`), scope)).toEqual(["inside"]);
    expect(verdicts(request(`GET ${BLOB}/secret/a`), scope)).toEqual(["outside"]);
    expect(verdicts(copyOf("con/b"), scope)).toEqual(["inside", "inside"]);
    expect(verdicts(copyOf("secret/key.txt"), scope)).toEqual(["inside", "outside"]);
    // In an account that `places` does not contain: its name alone identifies it.
    const others = "https://others.blob.core.windows.net";
    expect(verdicts(request(`GET ${others}/any/a`), scope)).toEqual(["inside"]);
    const group = { resourceGroups: [`${SUBSCRIPTION}/data`] };
    expect(verdicts(request(`GET ${others}/any/a`), { ...scope, ...group })).toEqual(["outside"]);
    // Requests about more than a container.
    for (const line of [
      `GET ${BLOB}/?comp=list`,
      `GET ${BLOB}/?comp=blobs&where=x`,
      `GET ${GROUP}`,
    ])
      expect(verdicts(request(line), scope)).toEqual(["outside"]);
    expect(verdicts(request(`GET ${BLOB}/con2/a`), scope)).toEqual(["outside"]);
  });

  test("records name the source", () => {
    const resolution = azure.resolveAction(copyOf("secret/sub/key%20x.txt"));
    const shown =
      resolution.kind === "resolved"
        ? resolution.actions.flatMap(({ resources }) =>
            resources.flatMap((each) => (each.kind === "scoped" ? (each.shown ?? []) : [])),
          )
        : [];
    expect(shown).toEqual(["reports/con/a", "reports/secret/sub/key x.txt"]);
  });

  test.each([
    "http://reports.blob.core.windows.net/con/a",
    "https://evil.example/con/a",
    "https://reports.blob.core.windows.net/con",
    "https://reports.blob.core.windows.net/con/../other/a",
    "https://reports.blob.core.windows.net/con/a?sig=x",
    "https://reports.blob.core.windows.net@evil.example/con/a",
    "https://reports.blob.core.windows.net/con/a, https://others.blob.core.windows.net/con/b",
    "https://reports.queue.core.windows.net/con/a",
    "https://reports.blob.core.windows.net/CON/a",
    "https://reports.blob.core.windows.net/con/",
    "x https://reports.blob.core.windows.net/con/a",
    "https://reports.blob.core.windows.net/con/a?versionid=1&sig=x",
    "",
  ])("a copy from %s is refused", (source) => {
    expect(refused(`PUT ${BLOB}/con/a`, { "x-ms-copy-source": source })).toBe(true);
  });

  test.each(["x-ms-rename-source", "x-ms-file-copy-source"])("%s is refused", (name) => {
    expect(refused(`PUT ${BLOB}/con/a`, { [name]: "/con/b" })).toBe(true);
  });

  test.each(["snapshot=2026-01-01T00:00:00.0000000Z", "versionid=1"])(
    "a copy of one state is a copy: %s",
    (query) => {
      expect(told(copyOf(`con/b?${query}`))).toEqual([
        `${base}/blobs/write ${IN_CONTAINER}`,
        `${base}/blobs/read ${IN_CONTAINER}`,
      ]);
    },
  );

  test.each([
    `GET ${BLOB}/con`,
    `DELETE ${BLOB}/con/a?VersionId=1`,
    `DELETE ${BLOB}/con/a?deleteType=permanent`,
    `GET ${BLOB}/con/a?Snapshot=1`,
    `GET ${BLOB}/con?ResType=container`,
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
      "GET https://vault-1.vault.azure.net/secrets/db/?api-version=7.4",
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
    "GET https://vault-1.vault.azure.net/secrets/db//",
    "GET https://vault-1.vault.azure.net/secrets/",
    "GET https://vault-1.vault.azure.net/secrets/db/versions/",
    "GET https://vault-1.vault.azure.net/Secrets/db",
    "GET https://vault-1.vault.azure.net/secrets/d%2Fb",
    "GET https://x.vault-1.vault.azure.net/secrets/db",
    "PATCH https://vault-1.vault.azure.net/certificates/c",
  ])("%s is refused", (line) => {
    expect(refused(line)).toBe(true);
  });
});

test.each([
  "GET https://vault-1.vault.azure.net/secrets/a.b",
  "GET https://vault-1.vault.azure.net/secrets/a_b/versions",
  `DELETE https://vault-1.vault.azure.net/keys/${"k".repeat(128)}`,
  "POST https://vault-1.vault.azure.net/keys/k~1/create",
])("what is no name of Key Vault is refused: %s", (line) => {
  expect(refused(line)).toBe(true);
});
