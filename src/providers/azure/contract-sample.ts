import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type ContractSample, request } from "../testing.ts";

/** Location of a pod's projected token. */
export const tokenFile = path.join(mkdtempSync(path.join(tmpdir(), "svc-azure-")), "token");
writeFileSync(tokenFile, "federated.pod.token\n");

export const SUBSCRIPTION = "00000000-1111-2222-3333-444444444444";
export const IDS = {
  tenantId: "aaaaaaaa-1111-2222-3333-444444444444",
  clientId: "bbbbbbbb-1111-2222-3333-444444444444",
};
const config = { places: `reports=${SUBSCRIPTION}/data vault-1=${SUBSCRIPTION}/data` };

export const sample: ContractSample = {
  auth: {
    "client-secret": { secrets: { ...IDS, clientSecret: "abc8Q~client-secret-value" }, config },
    "federated-token": { secrets: IDS, config: { ...config, tokenFile } },
  },
  respond: () =>
    Response.json({
      access_token: "eyJ0.token-of-the-application",
      expires_in: 3599,
      token_type: "Bearer",
    }),
  tokens: ["eyJ0.token-of-the-application", "federated.pod.token"],
  requests: [
    {
      request: request(
        "GET " +
          `https://management.azure.com/subscriptions/${SUBSCRIPTION}/resourceGroups/data/` +
          "providers/Microsoft.Compute/virtualMachines/vm-1?api-version=2024-07-01",
      ),
      actions: ["Microsoft.Compute/virtualMachines/read"],
    },
    {
      request: request("GET https://reports.blob.core.windows.net/2026/a.csv"),
      actions: ["Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read"],
    },
    {
      request: request("GET https://vault-1.vault.azure.net/secrets/db?api-version=7.4"),
      actions: ["Microsoft.KeyVault/vaults/secrets/getSecret/action"],
    },
  ],
};
