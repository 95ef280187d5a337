import { describe, expect, test } from "vitest";
import type { ServiceRequest } from "../contract.ts";
import { request } from "../testing.ts";
import { resolve } from "./resolve.ts";

const SCOPE = "https://www.googleapis.com/auth/devstorage.read_only";
const buckets = new Map([["reports", "my-project"]]);

function told(call: ServiceRequest): readonly string[] {
  const resolution = resolve(call, buckets);
  if (resolution.kind !== "resolved") return [`(${resolution.reason})`];
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
      "PUT " +
        "https://storage.googleapis.com/upload/storage/v1/b/reports/o?uploadType=resumable&" +
        "upload_id=x",
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
      "POST " +
        "https://us-central1-aiplatform.googleapis.com/v1/projects/p-1/locations/us-central1/" +
        "publishers/google/models/gemini-2.5-pro:generateContent",
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

  test.each([
    "PUT https://storage.googleapis.com/upload/storage/v1/b/reports/o?upload_id=x",
    "DELETE https://storage.googleapis.com/upload/storage/v1/b/reports/o?upload_id=x",
    "PUT https://storage.googleapis.com/resumable/upload/storage/v1/b/reports/o?upload_id=x",
  ])("an upload that was begun goes on, or ends: %s", (line) => {
    expect(told(request(line))).toEqual(["storage.objects.insert my-project"]);
  });

  const firestore = "https://firestore.googleapis.com/v1/projects/p-1/databases/d/documents";
  test.each([
    [`DELETE ${firestore}/c/upload?upload_id=x`, "firestore.documents.delete p-1"],
    [`DELETE ${firestore}/upload/c?upload_id=x`, "firestore.documents.delete p-1"],
    [
      "DELETE https://sqladmin.googleapis.com/v1/projects/p-1/instances/upload/users?upload_id=x",
      "sqladmin.users.delete p-1",
    ],
    [
      "PUT https://sqladmin.googleapis.com/v1/projects/upload/instances/i/users?upload_id=x",
      "sqladmin.users.update upload",
    ],
  ])("what is only named upload is no upload: %s", (line, expected) => {
    expect(told(request(line))).toEqual([expected]);
  });

  test.each([
    "PUT https://storage.googleapis.com/upload/storage/v1/b/reports/o",
    "PUT https://storage.googleapis.com/upload/storage/v1/b/reports/o?upload=x",
    "PATCH https://storage.googleapis.com/upload/storage/v1/b/reports/o?upload_id=x",
    "GET https://storage.googleapis.com/upload/storage/v1/b/reports/o?upload_id=x",
    "PUT https://storage.googleapis.com/storage/v1/b/reports/o?upload_id=x",
  ])("what goes on with no upload is refused: %s", (line) => {
    expect(refused(line)).toBe(true);
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
      "/x/google.pubsub.v1.Publisher/Publish",
    ])
      expect(grpc(path)[0]).toMatch(/^\(/);
  });

  test("gRPC is no violation by itself", () => {
    const call = request("POST https://pubsub.googleapis.com/google.pubsub.v1.Publisher/Publish", {
      headers: { "content-type": "application/grpc" },
    });
    expect(resolve(call, buckets).kind).toBe("resolved");
  });

  test("an escaped colon before the last name is part of a name", () => {
    const line = "GET https://pubsub.googleapis.com/v1/projects/example.com%3Ap/topics";
    expect(told(request(line))).toEqual(["pubsub.topics.list example.com:p"]);
  });

  test("a refusal says what to do, where there is something", () => {
    const refusal = (line: string): unknown => resolve(request(line), buckets);
    expect(refusal("POST https://www.googleapis.com/batch")).toEqual({
      kind: "unresolved",
      reason: "A batch holds many requests in one body",
      hint: "Send them one by one.",
    });
    expect(refusal("GET https://pubsub.googleapis.com/v1/projects/p-1/topics?$x=1")).toEqual({
      kind: "unresolved",
      reason: "The query holds a parameter with $ that is not known",
    });
  });

  test.each([
    ["GET https://pubsub.googleapis.com/google.pubsub.v1.Publisher/Publish", "application/grpc"],
    ["POST https://pubsub.googleapis.com/google.pubsub.v1.Publisher/Publish?a", "application/grpc"],
    ["POST https://pubsub.googleapis.com/google.pubsub.v1.Publisher/Publish", "application/grpcx"],
    ["POST https://pubsub.googleapis.com/google.pubsub.v1.Publisher/Publish", "x-application/grpc"],
  ])("no call of gRPC: %s as %s", (line, type) => {
    expect(refused(line, { "content-type": type })).toBe(true);
  });

  test.each([
    [
      "GET https://pubsub.googleapis.com/v1/projects/p-1%2Fx/topics",
      "pubsub.topics.list unscopable",
    ],
    ["GET https://pubsub.googleapis.com/v1/projects/p-1/topics/a%3Apublish", "(The path ends in"],
    ["GET https://pubsub.googleapis.com/v1/projects/p-1/topics/", "(The path ends in"],
  ])("%s: %s", (line, expected) => {
    expect(told(request(line))[0]).toContain(expected);
  });
});

const JSON_TYPE = { "content-type": "application/json; charset=UTF-8" };
const sent = (line: string, body: object | string, headers = JSON_TYPE): ServiceRequest =>
  request(line, { headers, body: typeof body === "string" ? body : JSON.stringify(body) });

describe("names of objects are anything, percent-encoded", () => {
  const at = "https://storage.googleapis.com/storage/v1/b/reports/o";
  test.each([
    "a%2F%2Fb",
    "%2Fa",
    "folder%2F",
    "..%2Fsecret",
    "a%2F..%2F..%2Fsecret",
    "a%2F.%2Fb",
    "a%25b",
    "a%252Fb",
    "a%3Fb",
    "a%23b",
    "a%3Bb",
    "a%2Bb",
    "a%5Cb",
    "a:b",
    "2026-11-22T10%3A00%3A00Z",
    "a..b",
    "caf%C3%A9%20x",
    "a@b$c!d'e(f)g*h,i=j&k",
    "rewriteTo%2Fb%2Fsecret%2Fo%2Fx",
    "projects%2Fsecret",
  ])("%s", (name) => {
    expect(told(request(`GET ${at}/${name}`))).toEqual(["storage.objects.get my-project"]);
    expect(told(request(`DELETE ${at}/${name}`))).toEqual(["storage.objects.delete my-project"]);
    expect(told(request(`GET ${at.replace("storage.", "www.")}/${name}`))).toEqual([
      "storage.objects.get my-project",
    ]);
    expect(told(request(`GET ${at.replace(".com/", ".com/download/")}/${name}?alt=media`))).toEqual(
      ["storage.objects.get my-project"],
    );
    expect(told(request(`POST ${at}/${name}/rewriteTo/b/others/o/${name}`))).toEqual([
      "storage.objects.rewrite my-project",
      "storage.objects.rewrite unscopable",
    ]);
  });

  test.each([
    "a//b",
    "/a",
    "folder/",
    "..",
    ".",
    "../secret",
    "..%2F../x",
    "a/../b",
    "%2e%2e",
    "%2E%2E%2Fsecret",
    "a;b",
    "a+b",
    "a\\b",
    "a%",
    "a%2",
    "a%zz",
    "a%00",
    "a%0a",
    "a%ff",
    "a%c0%af",
    "a%61",
    "a%7e",
    "",
  ])("%j is refused", (name) => {
    expect(refused(`GET ${at}/${name}`)).toBe(true);
    expect(refused(`DELETE ${at}/${name}`)).toBe(true);
  });

  test.each([
    "GET https://storage.googleapis.com/storage/v1/b/reports%2Fx/o/a",
    "GET https://storage.googleapis.com/storage/v1/b/..%2Fsecret/o/a",
    "GET https://storage.googleapis.com/storage/v1/b/reports/%6F/a",
    "GET https://storage.googleapis.com/storage/v1/b/reports%3Fx/o/a",
    "GET https://pubsub.googleapis.com/storage/v1/b/reports/o/a",
    "GET https://storage.googleapis.com/storage/v1/projects/a%2F..%2Fb/serviceAccount",
    "GET https://storage.googleapis.com/storage/v1/projects/a//serviceAccount",
    "GET https://storage.googleapis.com/storage/v1/projects/p-1/serviceAccount/",
    "POST https://storage.googleapis.com/storage/v1/b/reports/o/a/rewriteTo/b/reports%2F..%2Fx/o/b",
  ])("%s is refused", (line) => {
    expect(refused(line)).toBe(true);
  });
});

describe("what a body or a parameter names is judged", () => {
  const COMPUTE = "POST https://compute.googleapis.com/compute/v1/projects/p-1/zones/z/instances";
  const SUBSCRIPTION = "PUT https://pubsub.googleapis.com/v1/projects/p-1/subscriptions/s";
  const SQL = "POST https://sqladmin.googleapis.com/v1/projects/p-1/instances/i/import";
  const VERTEX =
    "POST " +
    "https://us-central1-aiplatform.googleapis.com/v1/projects/p-1/locations/us-central1/" +
    "publishers/google/models/gemini-2.5-pro:generateContent";

  const besides = (call: ServiceRequest): readonly string[] =>
    told(call)
      .map((line) => line.split(" ")[1] ?? line)
      .filter((place) => place !== "p-1" && place !== "my-project");

  test.each<[string, object | string, readonly string[]]>([
    [COMPUTE, { disks: [{ initializeParams: { sourceImage: "global/images/own" } }] }, []],
    [
      COMPUTE,
      {
        disks: [
          {
            initializeParams: {
              sourceImage: "https://www.googleapis.com/compute/v1/projects/secret/global/images/db",
            },
          },
        ],
      },
      ["secret"],
    ],
    [COMPUTE, { disks: [{ source: "projects/secret/zones/z/disks/d" }] }, ["secret"]],
    [COMPUTE, { disks: [{ source: "projects%2Fsecret%2Fzones/z/disks/d" }] }, ["secret"]],
    [COMPUTE, { disks: [{ source: " projects/secret/zones/z/disks/d" }] }, ["secret"]],
    [COMPUTE, { serviceAccounts: [{ email: "admin@secret.iam.gserviceaccount.com" }] }, ["secret"]],
    [COMPUTE, { serviceAccounts: [{ email: "default", scopes: [SCOPE] }] }, []],
    [COMPUTE, '{"name":"x","name":"y"}', ["unscopable"]],
    [COMPUTE, "{", ["unscopable"]],
    [SUBSCRIPTION, { topic: "projects/p-1/topics/t" }, []],
    [SUBSCRIPTION, { topic: "projects/secret/topics/t" }, ["secret"]],
    [SUBSCRIPTION, { bigqueryConfig: { table: "secret.dataset.table" } }, ["secret"]],
    [SUBSCRIPTION, { bigqueryConfig: { table: "secret:dataset.table" } }, ["secret"]],
    [SUBSCRIPTION, { cloudStorageConfig: { bucket: "reports" } }, []],
    [SUBSCRIPTION, { cloudStorageConfig: { bucket: "other" } }, ["unscopable"]],
    [SQL, { importContext: { uri: "gs://reports/a.sql" } }, []],
    [SQL, { importContext: { uri: "gs://other/a.sql" } }, ["unscopable"]],
    [SQL, { importContext: { uri: "gs://other/a b.sql" } }, ["unscopable"]],
    [SQL, { importContext: { uri: "https://storage.googleapis.com/other/a" } }, ["unscopable"]],
    [SQL, { restoreBackupContext: { project: "secret" } }, ["secret"]],
    [SQL, { a: { project_id: "secret" } }, ["secret"]],
    [SQL, { a: { projectIds: ["p-1", "secret"] } }, ["secret"]],
    [SQL, { a: { projectNumber: 4711 } }, ["4711"]],
    [SQL, { a: "secret:europe-west1:db" }, ["secret"]],
    [SQL, { a: "europe-docker.pkg.dev/secret/repo/image:tag" }, ["secret"]],
    [SQL, { a: "eu.gcr.io/secret/image" }, ["secret"]],
    [SQL, { a: "bq://secret.dataset.table" }, ["secret"]],
    [SQL, { a: "//cloudresourcemanager.googleapis.com/folders/5" }, ["unscopable"]],
    [SQL, { a: "organizations/5" }, ["unscopable"]],
    [SQL, { a: "projects/-/x" }, ["unscopable"]],
    [SQL, { a: "projects/_/buckets/reports" }, []],
    [SQL, { a: "projects/_/buckets/other" }, ["unscopable"]],
    [
      VERTEX,
      { contents: [{ parts: [{ text: "projects/secret is a name, gs://other/a as well" }] }] },
      [],
    ],
    [
      VERTEX,
      { contents: [{ parts: [{ fileData: { fileUri: "gs://other/a.pdf" } }] }] },
      ["unscopable"],
    ],
    [
      VERTEX,
      { tools: [{ retrieval: { vertexRagStore: { rag: "projects/secret/x/ragCorpora/1" } } }] },
      ["secret"],
    ],
    [
      "POST https://pubsub.googleapis.com/v1/projects/p-1/topics/t:publish",
      { messages: [{ attributes: { a: "gs://other/x" }, data: "aGk=" }] },
      [],
    ],
    [
      "POST https://bigquery.googleapis.com/bigquery/v2/projects/p-1/datasets/d/tables",
      { tableReference: { projectId: "p-1" }, view: { query: "SELECT * FROM secret.d.t" } },
      ["unscopable"],
    ],
    [
      "POST https://bigquery.googleapis.com/bigquery/v2/projects/p-1/datasets/d/tables/t/insertAll",
      { rows: [{ json: { a: "projects/secret/x" } }] },
      [],
    ],
    [
      "POST https://storage.googleapis.com/storage/v1/b/reports/o/a/compose",
      {
        sourceObjects: [{ name: "projects/secret/a" }],
        destination: { name: "projects/x", metadata: { from: "gs://other/x" } },
      },
      [],
    ],
    [
      "POST https://storage.googleapis.com/storage/v1/b/reports/o/a/compose",
      { destination: { bucket: "other" } },
      ["unscopable"],
    ],
    [
      "PATCH https://storage.googleapis.com/storage/v1/b/reports",
      { logging: { logBucket: "other" } },
      ["unscopable"],
    ],
  ])("%s %j", (line, body, expected) => {
    expect(besides(sent(line, body))).toEqual(expected);
  });

  test.each([
    {},
    { "content-type": "application/x-protobuf" },
    { "content-type": "application/json+protobuf" },
    { "content-type": "application/x-www-form-urlencoded" },
    { "content-type": "application/json", "content-encoding": "gzip" },
    { "content-type": "x-application/json" },
    { "content-type": "application/jsonx; charset=utf-8" },
    { "content-type": "application/json; charset=utf-16" },
  ])("a body that is declared as %j cannot be judged", (headers) => {
    expect(besides(sent(SUBSCRIPTION, {}, headers as typeof JSON_TYPE))).toEqual(["unscopable"]);
  });

  test.each([
    "application/json",
    'Application/JSON ; charset="UTF-8" ',
    "application/json;charset=utf-8",
    "application/json;  charset=utf-8",
  ])("a body that is declared as %j is judged", (type) => {
    expect(besides(sent(SUBSCRIPTION, {}, { "content-type": type }))).toEqual([]);
  });

  test.each([
    [
      "POST " +
        "https://compute.googleapis.com/compute/v1/projects/p-1/zones/z/" +
        "instances?sourceInstanceTemplate=projects%2Fsecret%2Fglobal%2FinstanceTemplates%2Ft",
      ["secret"],
    ],
    ["GET https://storage.googleapis.com/storage/v1/b/reports/o?prefix=projects%2Fsecret", []],
    ["GET https://storage.googleapis.com/storage/v1/b/reports/o/projects%2Fsecret%2Fa", []],
    [
      "GET " +
        "https://iam.googleapis.com/v1/projects/p-1/serviceAccounts/x@secret.iam." +
        "gserviceaccount.com",
      ["secret"],
    ],
    // Methods whose answers or effects concern other projects.
    ["GET https://compute.googleapis.com/compute/v1/projects/p-1/getXpnHost", ["unscopable"]],
    [
      "GET " +
        "https://compute.googleapis.com/compute/v1/projects/p-1/aggregated/subnetworks/" +
        "listUsable",
      ["unscopable"],
    ],
    ["GET https://monitoring.googleapis.com/v3/projects/p-1/timeSeries", ["unscopable"]],
    [
      "DELETE " +
        "https://monitoring.googleapis.com/v1/locations/global/metricsScopes/secret/projects/" +
        "p-1",
      ["unscopable"],
    ],
    [
      "GET https://containeranalysis.googleapis.com/v1/projects/p-1/notes/n/occurrences",
      ["unscopable"],
    ],
    ["GET https://containeranalysis.googleapis.com/v1/projects/p-1/occurrences", []],
    [
      "POST https://dataplex.googleapis.com/v1/projects/p-1/locations/l:searchEntries",
      ["unscopable"],
    ],
  ])("%s", (line, expected) => {
    expect(besides(request(line))).toEqual(expected);
  });

  test("a long body costs time in proportion, and names without end are too many", () => {
    const long = { a: "x".repeat(500_000), b: "a:".repeat(200_000), c: "//".repeat(200_000) };
    expect(besides(sent(SQL, long))).toEqual([]);
    const many = (count: number): object => ({
      a: Array.from({ length: count }, (_, n) => `projects/other-${n}/x`),
    });
    expect(besides(sent(SQL, many(200)))).toHaveLength(200);
    expect(besides(sent(SQL, many(50_000)))).toEqual(["unscopable"]);
  });
});

describe("what answers with credentials is refused", () => {
  test.each([
    "POST https://oauth2.googleapis.com/token",
    "POST https://sts.googleapis.com/v1/token",
    "POST https://sts.us-east1.rep.googleapis.com/v1/token",
    "POST " +
      "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@b.iam." +
      "gserviceaccount.com:generateAccessToken",
    "POST https://iamcredentials.mtls.googleapis.com/v1/projects/-/serviceAccounts/a:signJwt",
    "GET " +
      "https://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/" +
      "token",
    "GET https://accounts.google.com/o/oauth2/auth",
    "POST https://iam.googleapis.com/v1/projects/p-1/serviceAccounts/a@b.c/keys",
    "POST https://iam.googleapis.com/v1/projects/p-1/serviceAccounts/a@b.c/keys:upload",
    "POST https://iam.googleapis.com/v1/projects/p-1/serviceAccounts/a@b.c:signBlob",
    "POST " +
      "https://storage.googleapis.com/storage/v1/projects/p-1/" +
      "hmacKeys?serviceAccountEmail=a@b.c",
    "GET https://redis.googleapis.com/v1/projects/p-1/locations/l/instances/i/authString",
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

  test("a wildcard is no project", () => {
    expect(told(request(`GET ${at}/v1/projects/-/topics`))).toEqual([
      "pubsub.topics.list unscopable",
    ]);
    expect(told(request(`GET ${at}/v1/projects/*/topics`))).toEqual([
      "pubsub.topics.list unscopable",
    ]);
  });
});
