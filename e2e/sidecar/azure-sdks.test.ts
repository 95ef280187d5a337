/**
 * Azure's own SDKs for blob storage and Key Vault, under `svc run`: a placeholder token, real host
 * names. The application's secret is exchanged at the token endpoint, once for each audience.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { AzureServer } from "../support/azure-server.ts";
import { Machine } from "../support/clients/machine.ts";
import type { Received } from "../support/services.ts";
import { serviceCalls, Tries } from "../support/tried.ts";

const APPLICATION = {
  tenantId: "01234567-89ab-cdef-0123-456789abcdef",
  clientId: "11234567-89ab-cdef-0123-456789abcdef",
  clientSecret: "the~real.secret-of-the-application-0123456",
};
const HOSTS = [
  "reports.blob.core.windows.net",
  "team-vault.vault.azure.net",
  "login.microsoftonline.com",
];
const BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs";
const VAULT = "Microsoft.KeyVault/vaults/secrets";

const server = new AzureServer(APPLICATION);
let machine: Machine;
let tries: Tries;
let received: readonly Received[];

/** The scope of blobs is a container's, and vaults are in none: two Providers. */
const provider = (
  name: string,
  hosts: readonly string[],
  policy: object,
  scope: object,
): object => ({
  apiVersion: "svc.io/v1",
  kind: "Provider",
  metadata: { name },
  spec: {
    type: "azure",
    hosts,
    auth: { type: "client-secret", secretRef: "azure" },
    policy,
    scope,
  },
});

beforeAll(async () => {
  machine = await Machine.start({
    hosts: [...HOSTS, "management.azure.com"],
    resources: [
      { apiVersion: "v1", kind: "Secret", metadata: { name: "azure" }, stringData: APPLICATION },
      provider(
        "blobs",
        [HOSTS[0] ?? "", HOSTS[2] ?? ""],
        { allow: ["Microsoft.Storage/*"], deny: [`${BLOBS}/delete`] },
        { containers: ["reports/daily"] },
      ),
      provider(
        "vault",
        [HOSTS[1] ?? ""],
        { allow: [`${VAULT}/getSecret/action`, `${VAULT}/setSecret/action`] },
        {},
      ),
      {
        apiVersion: "svc.io/v1",
        kind: "Agent",
        metadata: { name: "analyst" },
        spec: { models: [], providers: ["blobs", "vault"] },
      },
    ],
  });
  machine.outside.handler = (request, response) => server.serve(request, response);
  const command = [machine.node, machine.client("azure-sdks.mjs")];
  tries = new Tries(await machine.run(command, { agent: "analyst" }));
  received = machine.outside.requests;
}, 300_000);

afterAll(() => machine?.stop());

test.each(["plain.txt", "a folder/ünï + 1.txt"])("uploads and downloads the blob %j", (name) => {
  expect(tries.value(`blob ${name}`)).toEqual([`content of ${name}`, { origin: "a file" }]);
});

test("uploads in blocks, lists and copies", () => {
  expect(tries.value("blocks")).toBe(true);
  expect(tries.value("list")).toEqual(["a folder/ünï + 1.txt", "large", "plain.txt"]);
  expect(tries.value("copy")).toBe("content of plain.txt");
  expect(tries.of("missing")).toMatchObject({ status: 404, code: "BlobNotFound" });
});

test("sets and gets a secret, whichever call of a client is the first", () => {
  expect(tries.value("set secret")).toBe("s3cret");
  expect(tries.value("get secret")).toBe("s3cret");
  expect(tries.value("read first")).toEqual(["s3cret", "changed"]);
});

test.each([
  ["denied action", `The action ${BLOBS}/delete is not allowed for blobs.`],
  ["denied container", "reports/payroll is outside the scope of blobs."],
  ["denied copy", "reports/payroll is outside the scope of blobs."],
  ["denied key", "answers with credentials"],
  ["denied secret", `The action ${VAULT}/delete is not allowed for vault.`],
])("%s: shows why", (name, message) => {
  expect(tries.of(name)).toMatchObject({
    status: 403,
    code: "AuthorizationFailure",
    message: expect.stringContaining(message) as unknown,
  });
});

test("a response to HEAD has only the code", () => {
  expect(tries.of("denied head")).toMatchObject({ status: 403, code: "AuthorizationFailure" });
});

test("sends only tokens that Entra issued for the service, and shows the agent none", () => {
  const calls = received.filter(({ host }) => host !== "login.microsoftonline.com");
  expect(calls.length).toBeGreaterThan(15);
  for (const { host, headers } of calls) {
    const token = headers.authorization?.slice("Bearer ".length);
    const audience = host.endsWith(".vault.azure.net") ? "vault.azure.net" : "storage.azure.com";
    if (token !== undefined) expect(server.issued.get(token)).toBe(`https://${audience}/.default`);
    else expect(host, "only a vault is asked for its challenge").toBe("team-vault.vault.azure.net");
  }
  expect(JSON.stringify(received.map(({ url, rawHeaders }) => [url, rawHeaders]))).not.toMatch(
    /agents-own|payroll/,
  );
  for (const secret of [...server.issued.keys(), APPLICATION.clientSecret])
    expect(tries.output).not.toContain(secret);
});

test("records what was done and what was denied", () => {
  const records = serviceCalls(machine.stack.stateDir);
  expect(records).toContainEqual(
    expect.objectContaining({
      workload: "default/analyst",
      binding: "blobs",
      action: `${BLOBS}/write`,
      resource: "reports/daily/plain.txt",
      allowed: true,
    }),
  );
  expect(records).toContainEqual(
    expect.objectContaining({ binding: "vault", action: `${VAULT}/delete`, allowed: false }),
  );
  const text = JSON.stringify(records);
  for (const secret of [...server.issued.keys(), APPLICATION.clientSecret, "s3cret"])
    expect(text).not.toContain(secret);
});
