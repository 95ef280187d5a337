import { describe, expect, test } from "vitest";
import type { ServiceRequest } from "../contract.ts";
import { request } from "../testing.ts";
import { resolve } from "./resolve.ts";

const buckets = new Map([["reports", "my-project"]]);

function told(call: ServiceRequest): readonly string[] {
  const resolution = resolve(call, buckets);
  if (resolution.kind === "unresolved") return [`(${resolution.reason})`];
  return resolution.actions.flatMap(({ action, resources }) =>
    resources.map(
      (resource) => `${action} ${resource.kind === "scoped" ? resource.value : resource.kind}`,
    ),
  );
}

const refused = (line: string, headers: Record<string, string> = {}): boolean =>
  resolve(request(line, { headers }), buckets).kind === "unresolved";

describe("methods", () => {
  test.each([
    [
      "GET https://storage.googleapis.com/storage/v1/b/reports/o/a%2Fb.csv",
      ["storage.objects.get my-project"],
    ],
    [
      "GET https://storage.googleapis.com/download/storage/v1/b/reports/o/a?alt=media",
      ["storage.objects.get my-project"],
    ],
    [
      "POST https://storage.googleapis.com/upload/storage/v1/b/reports/o?uploadType=resumable",
      ["storage.objects.insert my-project"],
    ],
    [
      "PUT https://storage.googleapis.com/upload/storage/v1/b/reports/o?uploadType=resumable&upload_id=x",
      ["storage.objects.insert my-project"],
    ],
    [
      "GET https://storage.googleapis.com/storage/v1/b/others/o",
      ["storage.objects.list unscopable"],
    ],
    [
      "POST https://storage.googleapis.com/storage/v1/b/reports/o/a/rewriteTo/b/others/o/b",
      ["storage.objects.rewrite my-project", "storage.objects.rewrite unscopable"],
    ],
    [
      "GET https://storage.googleapis.com/storage/v1/b?project=my-project",
      ["storage.buckets.list my-project"],
    ],
    ["GET https://www.googleapis.com/storage/v1/b/reports", ["storage.buckets.get my-project"]],
    [
      "GET https://compute.googleapis.com/compute/v1/projects/p-1/zones/z/instances/i",
      ["compute.instances.get p-1"],
    ],
    [
      "POST https://compute.googleapis.com/compute/v1/projects/p-1/zones/z/instances/i/stop",
      ["compute.instances.stop p-1"],
    ],
    [
      "POST https://pubsub.googleapis.com/v1/projects/p-1/topics/t:publish",
      ["pubsub.topics.publish p-1"],
    ],
    ["PUT https://pubsub.googleapis.com/v1/projects/p-1/topics/t", ["pubsub.topics.create p-1"]],
    [
      "GET https://secretmanager.googleapis.com/v1/projects/p-1/secrets/s/versions/latest:access",
      ["secretmanager.versions.access p-1"],
    ],
    [
      "POST https://us-central1-aiplatform.googleapis.com/v1/projects/p-1/locations/us-central1/publishers/google/models/gemini-2.5-pro:generateContent",
      ["aiplatform.models.generateContent p-1"],
    ],
    [
      "GET https://pubsub.europe-west1.rep.googleapis.com/v1/projects/p-1/topics",
      ["pubsub.topics.list p-1"],
    ],
    [
      "POST https://bigquery.googleapis.com/bigquery/v2/projects/p-1/queries",
      ["bigquery.jobs.query p-1", "bigquery.jobs.query unscopable"],
    ],
    [
      "GET https://bigquery.googleapis.com/bigquery/v2/projects/p-1/datasets/d/tables/t/data",
      ["bigquery.tabledata.list p-1"],
    ],
    ["POST https://logging.googleapis.com/v2/entries:list", ["logging.entries.list unscopable"]],
    [
      "GET https://cloudresourcemanager.googleapis.com/v1/projects/p-1",
      ["cloudresourcemanager.projects.get p-1"],
    ],
    [
      "GET https://cloudresourcemanager.googleapis.com/v3/organizations/1",
      ["cloudresourcemanager.organizations.get unscopable"],
    ],
    ["GET https://www.googleapis.com/drive/v3/files", ["drive.files.list unscopable"]],
    [
      "GET https://storage.googleapis.com/storage/v1/b/reports?userProject=other",
      ["storage.buckets.get my-project", "storage.buckets.get other"],
    ],
  ])("%s", (line, expected) => {
    expect(told(request(line))).toEqual(expected);
  });

  test("whose quota is taken is in the scope as well", () => {
    expect(
      told(
        request("GET https://pubsub.googleapis.com/v1/projects/p-1/topics", {
          headers: { "x-goog-user-project": "other" },
        }),
      ),
    ).toEqual(["pubsub.topics.list p-1", "pubsub.topics.list other"]);
  });

  test("gRPC is told by its path, and cannot be scoped", () => {
    const grpc = (path: string): readonly string[] =>
      told(
        request(`POST https://pubsub.googleapis.com${path}`, {
          headers: { "content-type": "application/grpc" },
        }),
      );
    expect(grpc("/google.pubsub.v1.Publisher/Publish")).toEqual([
      "pubsub.Publisher.Publish unscopable",
    ]);
    expect(grpc("/google.iam.admin.v1.IAM/CreateServiceAccountKey")[0]).toContain("credentials");
    for (const path of [
      "/google.pubsub.v1.Publisher/Publish/x",
      "/evil.Publisher/Publish",
      "/google.pubsub.v1.Publisher/",
      "/v1/projects/p-1/topics",
    ])
      expect(grpc(path)[0]).toMatch(/^\(/);
  });
});

describe("what answers with credentials is refused", () => {
  test.each([
    "POST https://oauth2.googleapis.com/token",
    "POST https://sts.googleapis.com/v1/token",
    "POST https://sts.us-east1.rep.googleapis.com/v1/token",
    "POST https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@b.iam.gserviceaccount.com:generateAccessToken",
    "POST https://iamcredentials.mtls.googleapis.com/v1/projects/-/serviceAccounts/a:signJwt",
    "GET https://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token",
    "GET https://accounts.google.com/o/oauth2/auth",
    "POST https://iam.googleapis.com/v1/projects/p-1/serviceAccounts/a@b.c/keys",
    "POST https://iam.googleapis.com/v1/projects/p-1/serviceAccounts/a@b.c/keys:upload",
    "POST https://iam.googleapis.com/v1/projects/p-1/serviceAccounts/a@b.c:signBlob",
    "POST https://storage.googleapis.com/storage/v1/projects/p-1/hmacKeys?serviceAccountEmail=a@b.c",
    "GET https://apikeys.googleapis.com/v2/projects/p-1/locations/global/keys/k/keyString",
  ])("%s", (line) => {
    expect(refused(line)).toBe(true);
  });
});

test.each(["oauth2", "sts", "iamcredentials", "securetoken"])(
  "%s says why it is refused",
  (name) => {
    expect(told(request(`POST https://${name}.googleapis.com/v1/token`))[0]).toContain(
      "answers with credentials",
    );
  },
);

describe("what could be read in two ways is refused", () => {
  const at = "https://pubsub.googleapis.com";
  test.each([
    `GET ${at}//v1/projects/p-1/topics`,
    `GET ${at}/v1/projects/p-1/../p-2/topics`,
    `GET ${at}/v1/projects/p-1/%2e%2e/p-2/topics`,
    `GET ${at}/v1/projects/p-1%2F..%2Fp-2/topics`,
    `GET ${at}/v1/projects/p-1;x/topics`,
    `GET ${at}/v1/projects/p-1%5Cp-2/topics`,
    `GET ${at}/v1/projects/p-1/topics/`,
    `GET ${at}/v1/projects/p-1/t%6Fpics`,
    `GET ${at}/v1/projects/p-1%00/topics`,
    `POST ${at}/v1/projects/p-1/topics/t%3Apublish`,
    `POST ${at}/v1/projects/p-1/topics/t:publish:x`,
    `GET ${at}/v1/projects/p-1/topics/t:nothing`,
    `POST ${at}/v1/projects/p-1/topics/:publish`,
    `GET ${at}/v1/projects/p-1/topics?$httpMethod=DELETE`,
    `GET ${at}/v1/projects/p-1/topics?project=a&project=b`,
    `GET ${at}/v1/projects/p-1/topics?Project=a`,
    `GET ${at}/v1/projects/p-1/topics?a=b;c`,
    `POST ${at}/batch`,
    "POST https://www.googleapis.com/batch/storage/v1",
    `GET ${at}/v1/nothing`,
    `get ${at}/v1/projects/p-1/topics`,
    "GET https://reports.storage.googleapis.com/a",
    "GET https://storage.googleapis.com/reports/a",
    "GET https://evil.pubsub.googleapis.com/v1/projects/p-1/topics",
    "GET https://pubsub.googleapis.com.evil.com/v1/projects/p-1/topics",
    "GET https://pubsub.mtls.googleapis.com/v1/projects/p-1/topics",
    "GET https://fonts.googleapis.com/css",
  ])("%s", (line) => {
    expect(refused(line)).toBe(true);
  });

  test("another method by a header", () => {
    expect(
      refused(`GET ${at}/v1/projects/p-1/topics/t`, { "x-http-method-override": "DELETE" }),
    ).toBe(true);
  });

  test("a wildcard is no project", () => {
    expect(told(request(`GET ${at}/v1/projects/-/topics`))).toEqual([
      "pubsub.topics.list unscopable",
    ]);
    expect(told(request(`GET ${at}/v1/projects/*/topics`))).toEqual([
      "pubsub.topics.list unscopable",
    ]);
  });
});
