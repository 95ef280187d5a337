import { createHash, createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { ConfigError, InjectionError, type Injection, type ServiceRequest } from "../contract.ts";
import { context, FakeServer, request } from "../testing.ts";
import { plugin } from "./plugin.ts";
import { ACCOUNT, aws, KEY } from "./testing.ts";

const ROLE = "arn:aws:iam::111122223333:role/agents/reader";
const S3 = "https://bucket.s3.eu-west-1.amazonaws.com";
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const set = (injection: Injection): Record<string, string> => Object.fromEntries(injection.set);

/**
 * AWS's verification of a signature: computed here from AWS's description alone, over the request
 * as it is sent.
 */
function verifies(
  call: ServiceRequest,
  injection: Injection,
  canonicalPath: string,
  canonicalQuery = "",
): boolean {
  const headers: Record<string, string> = {
    ...Object.fromEntries(call.headers),
    host: call.host,
    ...set(injection),
  };
  const [, scope = "", signed = "", signature = ""] =
    /Credential=[^/]+\/([^,]+), SignedHeaders=([^,]+), Signature=(\w+)$/.exec(
      set(injection)["authorization"] ?? "",
    ) ?? [];
  const lines = signed
    .split(";")
    .map((name) => `${name}:${headers[name] ?? ""}\n`)
    .join("");
  const canonical =
    `${call.method}\n${canonicalPath}\n${canonicalQuery}\n${lines}\n${signed}\n` +
    headers["x-amz-content-sha256"];
  const toSign = `AWS4-HMAC-SHA256\n${headers["x-amz-date"]}\n${scope}\n${sha256(canonical)}`;
  const key = scope
    .split("/")
    .reduce<Buffer>(
      (secret, part) => createHmac("sha256", secret).update(part).digest(),
      Buffer.from(`AWS4${KEY.secretAccessKey}`),
    );
  return createHmac("sha256", key).update(toSign).digest("hex") === signature;
}

describe("a request is signed as it leaves", () => {
  test.each([
    ["/a//b/../c", "/a//b/../c"],
    ["/a%20b%2Bc%2Fd", "/a%20b%2Bc%2Fd"],
    ["/%C3%A9!'()*", "/%C3%A9!'()*"],
    ["//", "//"],
  ])("S3 %s", async (path, canonical) => {
    const call = request(`GET ${S3}${path}`);
    const injection = await aws.injectCredentials(call);
    expect(verifies(call, injection, canonical)).toBe(true);
    expect(set(injection)["x-amz-content-sha256"]).toBe("UNSIGNED-PAYLOAD");
    expect(set(injection)["authorization"]).toContain("/eu-west-1/s3/aws4_request");
  });

  test("S3's query, sorted and escaped once", async () => {
    const call = request(`GET ${S3}/?prefix=a%2Fb&list-type=2&delimiter=/`);
    expect(
      verifies(
        call,
        await aws.injectCredentials(call),
        "/",
        "delimiter=%2F&list-type=2&prefix=a%2Fb",
      ),
    ).toBe(true);
  });

  test("other services escape their paths once more, and have their body hashed", async () => {
    const call = request(
      "POST https://lambda.eu-west-1.amazonaws.com/2015-03-31/functions/a%3Ab/invocations",
      {
        body: "{}",
        headers: { "content-type": "application/json", "x-amz-content-sha256": "0".repeat(64) },
      },
    );
    const injection = await aws.injectCredentials(call);
    expect(set(injection)["x-amz-content-sha256"]).toBe(sha256("{}"));
    expect(verifies(call, injection, "/2015-03-31/functions/a%253Ab/invocations")).toBe(true);
  });

  test("chunks with an unsigned trailer stay whole, and their headers are signed", async () => {
    const headers = {
      "content-encoding": "aws-chunked",
      "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
      "x-amz-decoded-content-length": "5",
      "x-amz-sdk-checksum-algorithm": "CRC32",
      "x-amz-trailer": "x-amz-checksum-crc32",
    };
    const call = request(`PUT ${S3}/a`, { headers });
    const injection = await aws.injectCredentials(call);
    expect(verifies(call, injection, "/a")).toBe(true);
    expect(set(injection)["x-amz-content-sha256"]).toBe("STREAMING-UNSIGNED-PAYLOAD-TRAILER");
    expect(set(injection)["authorization"]).toContain(
      "host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-sdk-" +
        "checksum-algorithm;x-amz-trailer",
    );
    expect(injection.remove).toEqual(["x-amz-security-token"]);
    expect(injection.setQuery).toEqual([]);
  });

  test("a name that stands twice in the query", async () => {
    const call = request("GET https://eks.eu-west-1.amazonaws.com/tags/x?tagKeys=b&tagKeys=a");
    const injection = await aws.injectCredentials(call);
    expect(verifies(call, injection, "/tags/x", "tagKeys=a&tagKeys=b")).toBe(true);
  });

  test("the agent's own date and token count for nothing", async () => {
    const headers = {
      "x-amz-date": "20200101T000000Z",
      "x-amz-security-token": "agent",
      authorization: "AWS4-HMAC-SHA256 Credential=x",
    };
    const injection = await aws.injectCredentials(request(`GET ${S3}/a`, { headers }));
    expect(JSON.stringify(injection)).not.toContain("agent");
    expect(set(injection)["x-amz-date"]).not.toBe("20200101T000000Z");
    expect(set(injection)["authorization"]).not.toContain("x-amz-security-token");
  });

  test.each([
    request("GET https://lb-1.eu-west-1.elb.amazonaws.com/"),
    request(`GET ${S3}/a?X-Amz-Signature=x`),
    request(`GET ${S3}/a?prefix=a+b`),
    request(`PUT ${S3}/a`, {
      headers: { "x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" },
    }),
    request("POST https://sqs.eu-west-1.amazonaws.com/", { headers: { "content-length": "3" } }),
    request("GET https://maps.geo.eu-west-1.amazonaws.com/nothing"),
  ])("%# is not signed, even in audit mode", async (call) => {
    await expect(aws.injectCredentials(call)).rejects.toThrow(InjectionError);
  });
});

describe("a role", () => {
  const answer = (n: number, expires: number): string =>
    `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE${n}</` +
    `AccessKeyId><SecretAccessKey>role/secret${n}</` +
    `SecretAccessKey><SessionToken>token${n}</` +
    `SessionToken><Expiration>${new Date(expires).toISOString()}</Expiration></` +
    "Credentials></AssumeRoleResult></AssumeRoleResponse>";

  function started(respond?: (n: number) => Response): {
    readonly instance: ReturnType<typeof plugin.create>;
    readonly server: FakeServer;
    readonly made: ReturnType<typeof context>;
  } {
    let n = 0;
    const server: FakeServer = new FakeServer(() => {
      n += 1;
      return respond?.(n) ?? new Response(answer(n, made.clock.now() + 3_600_000));
    });
    const made = context({
      authType: "access-key",
      secrets: KEY,
      config: { roleArn: ROLE, region: "eu-central-1", externalId: "ext" },
      fetch: server.fetch,
    });
    return { instance: plugin.create(made), server, made };
  }

  test("is assumed at the start, and its keys sign, with the token", async () => {
    const { instance, server } = started();
    await instance.start();
    expect(server.calls).toHaveLength(1);
    expect(server.calls[0]?.url).toBe("https://sts.eu-central-1.amazonaws.com/");
    expect(server.calls[0]?.headers.get("authorization")).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE\/\d{8}\/eu-central-1\/sts\/aws4_request/,
    );
    expect(Object.fromEntries(new URLSearchParams(server.calls[0]?.body))).toEqual({
      Action: "AssumeRole",
      Version: "2011-06-15",
      RoleArn: ROLE,
      RoleSessionName: "svc-bound",
      DurationSeconds: "3600",
      ExternalId: "ext",
    });
    const injection = set(await instance.injectCredentials(request(`GET ${S3}/a`)));
    expect(injection["authorization"]).toContain("Credential=ASIAROLE1/");
    expect(injection["authorization"]).toContain("x-amz-security-token");
    expect(injection["x-amz-security-token"]).toBe("token1");
    await instance.stop();
  });

  test("is assumed anew about every 50 minutes, in the background", async () => {
    const { instance, server, made } = started();
    await instance.start();
    await made.clock.advanceAndSettle(51 * 60_000);
    expect(server.calls).toHaveLength(2);
    expect(
      set(await instance.injectCredentials(request(`GET ${S3}/a`)))["x-amz-security-token"],
    ).toBe("token2");
    await instance.stop();
  });

  test("a refusal is told without a value", async () => {
    const { instance, made } = started(
      () => new Response("<Error>AccessDenied role/secret</Error>", { status: 403 }),
    );
    await instance.start();
    await expect(instance.injectCredentials(request(`GET ${S3}/a`))).rejects.toThrow(
      InjectionError,
    );
    expect(made.lines.join()).toContain("trust policy");
    expect(made.lines.join()).not.toContain("role/secret");
    await instance.stop();
  });

  test("an answer without credentials is an error", async () => {
    const { instance, made } = started(() => new Response("<AssumeRoleResponse/>"));
    await instance.start();
    await expect(instance.injectCredentials(request(`GET ${S3}/a`))).rejects.toThrow(
      InjectionError,
    );
    expect(made.lines.join()).toContain("holds no credentials");
    await instance.stop();
  });
});

describe("settings", () => {
  const create = (config: Record<string, string>, secrets: Record<string, string> = KEY): unknown =>
    plugin.create(context({ authType: "access-key", secrets, config }));

  test.each([
    [{ region: "Europe" }],
    [{ accountId: "123" }],
    [{ roleArn: "reader" }],
    [{ externalId: "ext" }],
    [{ roleArn: ROLE, accountId: "999988887777" }],
  ])("%j is refused", (config) => {
    expect(() => create(config)).toThrow(ConfigError);
  });

  test.each([
    [{ ...KEY, accessKeyId: "" }],
    [{ ...KEY, secretAccessKey: "short" }],
    [{ ...KEY, secretAccessKey: "with spaces in the middle of it all" }],
    [{ ...KEY, accessKeyId: "ASIAIOSFODNN7EXAMPLE" }],
  ])("a wrong secret is refused, and not shown (%#)", (secrets) => {
    try {
      create({}, secrets);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError);
      expect(String(error)).not.toContain(secrets.secretAccessKey);
    }
  });

  test("right ones are taken", () => {
    create({ roleArn: ROLE, accountId: ACCOUNT, region: "eu-central-1" });
    create({}, { ...KEY, accessKeyId: "ASIAIOSFODNN7EXAMPLE", sessionToken: "token" });
  });
});
