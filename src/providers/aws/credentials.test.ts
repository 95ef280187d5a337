/** The keys of a user, and those of a role that it assumes. */
import { describe, expect, test } from "vitest";
import { context, FakeServer } from "../testing.ts";
import { assumedRole, staticCredentials } from "./credentials.ts";
import { plugin } from "./plugin.ts";
import type { AwsCredentials } from "./sign.ts";
import { KEY } from "./testing.ts";

const ROLE = "arn:aws:iam::111122223333:role/reader";
const OTHER_ACCOUNT = "999988887777";
const HOUR_MS = 3_600_000;

describe("a key", () => {
  const read = (more: Record<string, string>): AwsCredentials =>
    staticCredentials(context({ secrets: { ...KEY, ...more } }));

  test("is read without the spaces around its values", () => {
    const spaced = { accessKeyId: ` ${KEY.accessKeyId}\n`, sessionToken: " token\n" };
    expect(read(spaced)).toEqual({ ...KEY, sessionToken: "token" });
    expect(read({})).toEqual({ ...KEY, sessionToken: undefined });
  });

  test.each<[name: string, more: Record<string, string>, key: string]>([
    ["no id", { accessKeyId: "" }, "accessKeyId"],
    ["an id in small letters", { accessKeyId: KEY.accessKeyId.toLowerCase() }, "accessKeyId"],
    ["an id with more before it", { accessKeyId: `x ${KEY.accessKeyId}` }, "accessKeyId"],
    ["an id with more after it", { accessKeyId: `${KEY.accessKeyId} x` }, "accessKeyId"],
    ["no secret", { secretAccessKey: "" }, "secretAccessKey"],
    ["a secret of two words", { secretAccessKey: `${KEY.secretAccessKey} x` }, "secretAccessKey"],
    [
      "a secret with more before it",
      { secretAccessKey: `x ${KEY.secretAccessKey}` },
      "secretAccessKey",
    ],
    ["an empty token", { sessionToken: "" }, "sessionToken"],
    ["a token of two words", { sessionToken: "a b" }, "sessionToken"],
    ["a temporary id without a token", { accessKeyId: "ASIAIOSFODNN7EXAMPLE" }, "sessionToken"],
  ])("with %s is refused", (_name, more, key) => {
    expect(() => read(more)).toThrow(`the Secret's key ${key} `);
  });

  test("that is temporary has a token", () => {
    const temporary = { accessKeyId: "ASIAIOSFODNN7EXAMPLE", sessionToken: "token" };
    expect(read(temporary)).toMatchObject(temporary);
  });
});

describe("settings", () => {
  const create = (config: Record<string, string>): unknown =>
    plugin.create(context({ authType: "access-key", secrets: KEY, config }));

  test.each<[config: Record<string, string>, key: string]>([
    [{ region: "Europe" }, "region"],
    [{ region: "eu-west-1.evil.example" }, "region"],
    [{ region: "x.eu-west-1" }, "region"],
    [{ accountId: "11112222333" }, "accountId"],
    [{ accountId: "1111222233334" }, "accountId"],
    [{ roleArn: "reader" }, "roleArn"],
    [{ roleArn: `${ROLE} x` }, "roleArn"],
    [{ roleArn: `x${ROLE}` }, "roleArn"],
    [{ externalId: "an-id" }, "externalId"],
    [{ roleArn: ROLE, externalId: "x" }, "externalId"],
    [{ roleArn: ROLE, externalId: "two words" }, "externalId"],
    [{ roleArn: ROLE, accountId: OTHER_ACCOUNT }, "accountId"],
  ])("%j are refused", (config, key) => {
    expect(() => create(config)).toThrow(`config.${key} `);
  });

  test.each<[config: Record<string, string>]>([
    [{}],
    [{ region: "us-gov-east-1", accountId: OTHER_ACCOUNT }],
    [{ roleArn: ROLE, externalId: "an-id:1", accountId: "111122223333" }],
  ])("%j are taken", (config) => {
    expect(() => create(config)).not.toThrow();
  });
});

describe("a role", () => {
  const now = context().clock.now();
  const answer = (fields: Record<string, string> = {}): string =>
    Object.entries({
      AccessKeyId: "ASIAROLE",
      SecretAccessKey: "role-secret",
      SessionToken: "role-token",
      Expiration: new Date(now + HOUR_MS).toISOString(),
      ...fields,
    })
      .map(([name, value]) => `<${name}>${value}</${name}>`)
      .join("\n");

  async function assumed(
    respond: () => Response,
    { region = "eu-west-1", binding = "bound", externalId = undefined as string | undefined } = {},
  ): Promise<{ keys: AwsCredentials | undefined; server: FakeServer; lines: string }> {
    const server = new FakeServer(respond);
    const ctx = context({ fetch: server.fetch, binding });
    const own = { ...KEY, sessionToken: undefined };
    const source = assumedRole(ctx, own, { arn: ROLE, externalId, region });
    await source.start();
    const keys = await Promise.resolve()
      .then(() => source.current())
      .catch(() => undefined);
    await source.stop();
    return { keys, server, lines: ctx.lines.join() };
  }

  test("gives its keys", async () => {
    const { keys, server } = await assumed(() => new Response(answer()));
    expect(keys).toEqual({
      accessKeyId: "ASIAROLE",
      secretAccessKey: "role-secret",
      sessionToken: "role-token",
    });
    expect(server.calls).toHaveLength(1);
    const [call] = server.calls;
    expect(call).toMatchObject({ method: "POST", url: "https://sts.eu-west-1.amazonaws.com/" });
    expect(call?.headers.get("host")).toBeNull();
    expect(Object.fromEntries(new URLSearchParams(call?.body))).toEqual({
      Action: "AssumeRole",
      Version: "2011-06-15",
      RoleArn: ROLE,
      RoleSessionName: "svc-bound",
      DurationSeconds: "3600",
    });
  });

  test("is assumed in China by China's server", async () => {
    const { server } = await assumed(() => new Response(answer()), { region: "cn-north-1" });
    expect(server.calls[0]?.url).toBe("https://sts.cn-north-1.amazonaws.com.cn/");
  });

  test("is assumed with its external id, in a session that is named after the Provider", async () => {
    const options = { externalId: "an-id", binding: `a b/${"c".repeat(80)}` };
    const { server } = await assumed(() => new Response(answer()), options);
    const sent = new URLSearchParams(server.calls[0]?.body);
    expect(sent.get("ExternalId")).toBe("an-id");
    expect(sent.get("RoleSessionName")).toBe(`svc-a-b-${"c".repeat(56)}`);
  });

  test.each([
    [400, true],
    [403, true],
    [429, false],
    [500, false],
    [304, false],
  ])("that STS answers with %i is refused for good: %s", async (status, refused) => {
    const { keys, lines } = await assumed(() => new Response(null, { status }));
    expect(keys).toBeUndefined();
    expect(lines).toContain(`STS answered ${status}`);
    expect(lines.includes("trust policy")).toBe(refused);
  });

  test.each<[name: string, text: string]>([
    ["no id", answer({ AccessKeyId: "" })],
    ["no secret", answer({ SecretAccessKey: "" })],
    ["no token", answer({ SessionToken: "" })],
    ["a token that ends a header", answer({ SessionToken: "a\r\nb" })],
    ["no end", answer({ Expiration: "" })],
    ["an end that is none", answer({ Expiration: "soon" })],
    ["very much", `${answer()}${" ".repeat(64 * 1024)}`],
    ["nothing", ""],
  ])("whose answer holds %s is not assumed", async (_name, text) => {
    const { keys, lines } = await assumed(() => new Response(text));
    expect(keys).toBeUndefined();
    expect(lines).toContain("holds no credentials");
  });
});
