/**
 * AWS's own SDKs, as agents use them, under `svc run`: a placeholder key in their environment, real
 * host names, no custom endpoint. A server that computes each signature from the specification
 * verifies the requests.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AwsServer } from "../support/aws-server.ts";
import { verify } from "../support/aws-verify.ts";
import { ROOT } from "../support/build.ts";
import { Machine } from "../support/clients/machine.ts";
import type { Received } from "../support/services.ts";
import type { Ran } from "../support/stack.ts";

const KEY = {
  accessKeyId: "AKIAREALREALREALREAL",
  secretAccessKey: "the/real+secret/of+these/tests0123456789",
  region: "us-east-1",
};
const DUMMY = {
  AWS_ACCESS_KEY_ID: "AKIADUMMYDUMMYDUMMYD",
  AWS_SECRET_ACCESS_KEY: "of-no-worth",
  AWS_DEFAULT_REGION: KEY.region,
  AWS_REGION: KEY.region,
};
const KEYS = JSON.parse(
  readFileSync(path.join(ROOT, "e2e/support/clients/aws-keys.json"), "utf8"),
) as string[];
const S3_HOSTS = ["s3.amazonaws.com", "s3.us-east-1.amazonaws.com"];
const HOSTS = [
  "dynamodb.us-east-1.amazonaws.com",
  "sts.us-east-1.amazonaws.com",
  "sts.amazonaws.com",
  ...S3_HOSTS.flatMap((host) => [host, `reports.${host}`, `payroll.${host}`]),
];

/** A line of a client's program. */
interface Tried {
  readonly name: string;
  readonly value?: unknown;
  readonly status?: number;
  readonly code?: string;
  readonly message?: string;
  readonly error?: string;
}

describe.each<[string, (machine: Machine) => readonly string[]]>([
  ["boto3", (machine) => ["/usr/bin/python3", machine.client("aws_boto3.py")]],
  ["the SDK for JavaScript", (machine) => [machine.node, machine.client("aws-sdk.mjs")]],
])("%s", (_name, command) => {
  const server = new AwsServer(KEY);
  let machine: Machine;
  let ran: Ran;
  let tried: ReadonlyMap<string, Tried>;
  let received: readonly Received[];

  beforeAll(async () => {
    machine = await Machine.start({
      hosts: HOSTS,
      resources: [
        {
          apiVersion: "v1",
          kind: "Secret",
          metadata: { name: "aws" },
          stringData: { accessKeyId: KEY.accessKeyId, secretAccessKey: KEY.secretAccessKey },
        },
        {
          apiVersion: "svc.io/v1",
          kind: "Provider",
          metadata: { name: "aws" },
          spec: {
            type: "aws",
            hosts: HOSTS,
            auth: { type: "access-key", secretRef: "aws" },
            config: { accountId: "111122223333" },
            policy: {
              allow: ["s3:*", "dynamodb:PutItem", "dynamodb:GetItem", "sts:GetCallerIdentity"],
            },
            scope: {
              arns: [
                "arn:aws:s3:::reports",
                "arn:aws:s3:::reports/*",
                "arn:aws:dynamodb:us-east-1:111122223333:table/jobs",
              ],
            },
          },
        },
        {
          apiVersion: "svc.io/v1",
          kind: "Agent",
          metadata: { name: "analyst" },
          spec: { models: [], providers: ["aws"] },
        },
      ],
      shared: { python: path.join(ROOT, ".venv/clients") },
    });
    machine.outside.handler = (request, response) => server.serve(request, response);
    ran = await machine.run([...command(machine), machine.client("aws-keys.json")], {
      agent: "analyst",
      env: { ...DUMMY, PYTHONPATH: `${machine.dir}/python` },
    });
    tried = new Map(
      ran.stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Tried)
        .map((each) => [each.name, each]),
    );
    received = machine.outside.requests;
  });

  afterAll(() => machine?.stop());

  const value = (name: string): unknown => {
    const { value: found, ...failure } = tried.get(name) ?? { error: `not tried: ${ran.stderr}` };
    return found ?? failure;
  };

  test.each(KEYS)("puts, heads and gets the key %j", (key) => {
    expect(value(`key ${key}`)).toEqual([`content of ${key}`, true]);
  });

  test("lists keys as they are, and deletes each", () => {
    expect(value("list")).toEqual(KEYS.toSorted());
    expect(value("delete each")).toEqual([]);
  });

  test("streams a body, with its checksum at the end", () => {
    expect(value("stream")).toEqual([true, "text/plain", { origin: "a  file" }]);
    const streams = received.filter(
      ({ headers }) => headers["x-amz-content-sha256"] === "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    );
    expect(streams.map(({ headers }) => headers["x-amz-trailer"])).toContain(
      "x-amz-checksum-crc32",
    );
    expect(value("content encoding")).toBe("gzip");
  });

  test("uploads in parts, and gives up", () => {
    expect(value("multipart")).toBe(true);
    expect(value("abort")).toBe(204);
  });

  test("copies, deletes many, gets a range and learns what is missing", () => {
    expect(value("copy")).toBe("copied");
    expect(value("delete together")).toEqual([4, []]);
    expect(value("range")).toBe("234");
    expect(tried.get("missing")).toMatchObject({ status: 404, code: "NoSuchKey" });
  });

  test("puts and gets an item of DynamoDB, and asks STS who it is", () => {
    expect(value("item")).toEqual({ id: "1", text: 'ünï "quoted"' });
    expect(value("identity")).toContain(KEY.accessKeyId);
  });

  test("does not use a URL that it presigned, and is told why", () => {
    const [status, body] = value("presigned") as [number, string];
    expect(status).toBe(403);
    expect(body).toContain(
      "The URL is presigned: its signature is not made with the real key. Call the API " +
        "itself; the proxy signs it.",
    );
  });

  test.each([
    ["denied bucket", "AccessDenied", "arn:aws:s3:::payroll/x is outside the scope of aws."],
    ["denied copy", "AccessDenied", "arn:aws:s3:::payroll/x is outside the scope of aws."],
    [
      "denied item",
      "AccessDeniedException",
      "The action dynamodb:DeleteItem is not allowed for aws.",
    ],
    [
      "denied role",
      "AccessDenied",
      "AssumeRole answers with credentials, which an agent must not have.",
    ],
  ])("%s: shows why", (name, code, message) => {
    expect(tried.get(name)).toMatchObject({
      status: 403,
      code,
      message: expect.stringContaining(message) as unknown,
    });
  });

  test("leaves nothing of the agent's key on any request, and has nothing of the real one", () => {
    expect(received.length).toBeGreaterThan(100);
    expect(JSON.stringify(received.map(({ url, rawHeaders }) => [url, rawHeaders]))).not.toMatch(
      /AKIADUMMY|of-no-worth|payroll/,
    );
    // GetCallerIdentity returns the id; the secret was not sent.
    expect(ran.stdout + ran.stderr).not.toContain(KEY.secretAccessKey);
    expect(received.every(({ headers }) => headers["user-agent"] !== undefined)).toBe(true);
  });
});

/**
 * https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html, "Examples:
 * Signature Calculations".
 */
describe("the server verifies", () => {
  const key = {
    accessKeyId: "AKIAIOSFODNN7EXAMPLE",
    secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    region: "us-east-1",
  };
  const now = Date.UTC(2013, 4, 24);
  const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  const example = (
    line: string,
    signature: string,
    headers: Readonly<Record<string, string>> = {},
    body = "",
  ): Parameters<typeof verify>[0] => {
    const [method = "", url = ""] = line.split(" ");
    const all = { "x-amz-content-sha256": EMPTY, "x-amz-date": "20130524T000000Z", ...headers };
    const authorization =
      "AWS4-HMAC-SHA256 " +
      `Credential=${key.accessKeyId}/20130524/us-east-1/s3/aws4_request,` +
      `SignedHeaders=${["host", ...Object.keys(all)].toSorted().join(";")},` +
      `Signature=${signature}`;
    return {
      host: "examplebucket.s3.amazonaws.com",
      method,
      url,
      rawHeaders: Object.entries({ ...all, authorization }).flat(),
      body: Buffer.from(body),
    };
  };
  const GET = example(
    "GET /test.txt",
    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    { range: "bytes=0-9" },
  );
  const PUT = example(
    "PUT /test%24file.text",
    "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
    {
      date: "Fri, 24 May 2013 00:00:00 GMT",
      "x-amz-storage-class": "REDUCED_REDUNDANCY",
      "x-amz-content-sha256": "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
    },
    "Welcome to Amazon S3.",
  );
  const LIST = example(
    "GET /?max-keys=2&prefix=J",
    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
  );

  test.each([
    ["GET", GET],
    ["PUT", PUT],
    [
      "a subresource",
      example(
        "GET /?lifecycle",
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
      ),
    ],
    ["LIST", LIST],
  ])("AWS's own example: %s", (_name, request) => {
    expect(verify(request, "s3", key, now)).toEqual(request.body);
  });

  test.each<[string, Partial<Parameters<typeof verify>[0]>, Parameters<typeof verify>[0], string]>([
    ["another path", { url: "/test.txT" }, GET, "SignatureDoesNotMatch"],
    ["a path that is normalised", { url: "/x/../test.txt" }, GET, "SignatureDoesNotMatch"],
    ["another query", { url: "/?max-keys=3&prefix=J" }, LIST, "SignatureDoesNotMatch"],
    ["another method", { method: "HEAD" }, GET, "SignatureDoesNotMatch"],
    ["another host", { host: "payroll.s3.amazonaws.com" }, GET, "SignatureDoesNotMatch"],
    [
      "another body",
      { body: Buffer.from("Welcome to Amazon S4.") },
      PUT,
      "XAmzContentSHA256Mismatch",
    ],
    [
      "a header that is not signed",
      { rawHeaders: [...PUT.rawHeaders, "x-amz-acl", "public-read"] },
      PUT,
      "AccessDenied",
    ],
    ["a presigned query besides", { url: "/test.txt?X-Amz-Signature=0" }, GET, "InvalidArgument"],
    ["no signature", { rawHeaders: [] }, GET, "MissingAuthenticationToken"],
  ])("not %s", (_name, change, request, code) => {
    expect(() => verify({ ...request, ...change }, "s3", key, now)).toThrow(
      expect.objectContaining({ code }),
    );
  });

  test.each([
    ["with another key", { secretAccessKey: "dummy" }, now, "SignatureDoesNotMatch"],
    ["in another region", { region: "eu-west-1" }, now, "AuthorizationHeaderMalformed"],
    ["half an hour later", {}, now + 1_800_000, "RequestTimeTooSkewed"],
  ])("not %s", (_name, change, at, code) => {
    expect(() => verify(GET, "s3", { ...key, ...change }, at)).toThrow(
      expect.objectContaining({ code }),
    );
  });
});
