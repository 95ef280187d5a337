import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type ContractSample, request } from "../testing.ts";

const { privateKey } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});

/** Location of a pod's projected token. */
const file = path.join(mkdtempSync(path.join(tmpdir(), "svc-gcp-")), "token");
writeFileSync(file, "federated.subject.token\n");

export const SERVICE_ACCOUNT = {
  type: "service_account",
  client_email: "agents@my-project.iam.gserviceaccount.com",
  private_key_id: "0123456789abcdef",
  private_key: privateKey,
  token_uri: "https://oauth2.googleapis.com/token",
};

export const EXTERNAL_ACCOUNT = {
  type: "external_account",
  audience: "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/k",
  subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
  token_url: "https://sts.googleapis.com/v1/token",
  credential_source: { file },
};

export const sample: ContractSample = {
  auth: {
    "service-account": { secrets: { serviceAccount: JSON.stringify(SERVICE_ACCOUNT) } },
    "external-account": { secrets: { externalAccount: JSON.stringify(EXTERNAL_ACCOUNT) } },
  },
  respond: () =>
    Response.json({
      access_token: "ya29.token-of-the-service-account",
      expires_in: 3600,
      token_type: "Bearer",
    }),
  tokens: ["ya29.token-of-the-service-account", "federated.subject.token", privateKey],
  namesMayEnd: {
    ends: ["%252f.."],
    reason: "Storage decodes the name of an object once: this one ends in %2f..",
  },
  requests: [
    {
      request: request(
        "GET https://storage.googleapis.com/storage/v1/b/reports/o/2026.csv?alt=media",
      ),
      actions: ["storage.objects.get"],
    },
    {
      request: request(
        "POST https://pubsub.googleapis.com/v1/projects/my-project/topics/news:publish",
      ),
      actions: ["pubsub.topics.publish"],
    },
    {
      request: request(
        "GET " +
          "https://compute.googleapis.com/compute/v1/projects/my-project/zones/europe-west1-" +
          "b/instances",
      ),
      actions: ["compute.instances.list"],
    },
  ],
};
