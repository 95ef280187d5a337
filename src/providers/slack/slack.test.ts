import { FakeClock } from "../../platform/testing.ts";
import { expect, test } from "vitest";
import { context, FakeServer, request } from "../testing.ts";
import { rotated } from "./contract-sample.ts";
import { ABOUT_NOTHING, IN_CHANNEL, WIDE } from "./methods.ts";
import { plugin } from "./plugin.ts";
import { redactPath, resolveSlack } from "./resolve.ts";

const JSON_TYPE = { "content-type": "application/json; charset=utf-8" };
const FORM = { "content-type": "application/x-www-form-urlencoded" };
const POST = "POST https://slack.com/api/chat.postMessage";

function told(line: string, headers: Readonly<Record<string, string>> = {}, body?: string): string {
  const { resolution, authenticated } = resolveSlack(
    request(line, body === undefined ? { headers } : { headers, body }),
  );
  if (resolution.kind === "unresolved") return "unresolved";
  const [{ action, resources } = { action: "", resources: [] }] = resolution.actions;
  return `${action} ${resources.map((each) => (each.kind === "scoped" ? each.value : each.kind)).join("+")}${authenticated ? "" : " (no token)"}`;
}

test("each method is one action", () => {
  const methods = [IN_CHANNEL, WIDE, ABOUT_NOTHING].flatMap((table) =>
    Object.entries(table).flatMap(([action, names]) =>
      names.map((name) => [name, action] as const),
    ),
  );
  expect(new Set(methods.map(([name]) => name)).size).toBe(methods.length);
  for (const [name, action] of methods)
    expect(told(`GET https://slack.com/api/${name}?channel=C1`)).toMatch(
      new RegExp(`^${action} (C1|unscopable|none)$`),
    );
});

test.each([
  [POST, FORM, "channel=C1&text=a%26b", "chat:write C1"],
  [POST, JSON_TYPE, '{"channel":"C1","text":"x"}', "chat:write C1"],
  [`${POST}?channel=C1`, JSON_TYPE, '{"text":"x"}', "chat:write C1"],
  [POST, JSON_TYPE, '{"text":"x"}', "chat:write unscopable"],
  [POST, JSON_TYPE, '{"channel":["C1"]}', "chat:write unscopable"],
  [POST, JSON_TYPE, '{"channel":"C1","channel_id":"C2"}', "chat:write C1+C2"],
  [POST, JSON_TYPE, '{"channel":"C1,C2"}', "chat:write unscopable"],
  ["POST https://slack.com/api/auth.test", {}, undefined, "auth:read none"],
  ["POST https://slack.com/api/auth.test", {}, "", "auth:read none"],
  ["GET https://slack.com/api/search.messages?query=x", {}, undefined, "search:read unscopable"],
  [
    "GET https://files.slack.com/files-pri/T1-F1/download/a%20b.txt",
    {},
    undefined,
    "files:read unscopable",
  ],
  [
    "POST https://files.slack.com/upload/v1/CwABAAAAXAoAA",
    {},
    "bytes",
    "files:write unscopable (no token)",
  ],
])("%s %j %j is %s", (line, headers, body, expected) => {
  expect(told(line, headers, body)).toBe(expected);
});

test.each([
  [POST, JSON_TYPE, '{"channel":"C1","channel":"C2"}'],
  [`${POST}?channel=C1`, JSON_TYPE, '{"channel":"C2"}'],
  [`${POST}?channel=C1&channel=C2`, {}, undefined],
  [POST, FORM, "channel=C1&channel=C2"],
  [POST, FORM, "channel=C1&channel[]=C2"],
  [POST, FORM, "channel=C1&channel%5B%5D=C2"],
  [POST, FORM, "channel_id=C1&channel.id=C2"],
  [POST, FORM, "channel=C1&%20channel=C2"],
  [POST, FORM, "channel=C1;channel=C2"],
  [POST, FORM, "channel=C1&token=xoxb-mine"],
  [POST, JSON_TYPE, '{"channel":"C1","token":"xoxb-mine"}'],
  [`${POST}?token=xoxb-mine`, {}, undefined],
  [POST, JSON_TYPE, "[]"],
  [POST, JSON_TYPE, "{"],
  [POST, { "content-type": "multipart/form-data; boundary=x" }, "--x"],
  [POST, { "content-type": "text/plain" }, "channel=C1"],
  [POST, {}, "channel=C1"],
  [POST, { ...JSON_TYPE, "content-encoding": "gzip" }, '{"channel":"C1"}'],
  [POST, { ...JSON_TYPE, "content-length": "2000000" }, undefined],
  ["GET https://slack.com/api/chat.postMessage?text=x", FORM, "channel=C2"],
  ["DELETE https://slack.com/api/chat.postMessage", {}, undefined],
  ["POST https://slack.com/api/chat.postmessage", {}, undefined],
  ["POST https://slack.com/api/chat.postMessage/", {}, undefined],
  ["POST https://slack.com/api//chat.postMessage", {}, undefined],
  ["POST https://slack.com/api/chat%2EpostMessage", {}, undefined],
  ["POST https://slack.com/api/api.test/../chat.postMessage", {}, undefined],
  ["POST https://slack.com/api/oauth.v2.access", {}, undefined],
  ["POST https://slack.com/api/auth.revoke", {}, undefined],
  ["POST https://slack.com/api/apps.connections.open", {}, undefined],
  ["POST https://slack.com/api/admin.users.list", {}, undefined],
  ["GET https://slack.com/signin", {}, undefined],
  ["GET https://files.slack.com/other/T1", {}, undefined],
  ["GET https://files.slack.com/files-pri/../x", {}, undefined],
])("%s %j %j is not understood", (line, headers, body) => {
  expect(told(line, headers, body)).toBe("unresolved");
});

test("the signature of an upload is taken out of a path", () => {
  expect(redactPath("/upload/v1/CwABAAAAXAoAA")).toBe("/upload/v1/[redacted]");
  expect(redactPath("/api/chat.postMessage")).toBe("/api/chat.postMessage");
});

function rotating() {
  const clock = new FakeClock();
  let uses = 0;
  const server = new FakeServer(() => rotated(++uses));
  const world = context({
    authType: "oauth2",
    secrets: { clientId: "1.2", clientSecret: "s3cr3t", refreshToken: "xoxe-1-refresh-0" },
    clock,
    fetch: server.fetch,
  });
  const instance = plugin.create(world);
  const authorization = async () => (await instance.injectCredentials(request(POST))).set[0]?.[1];
  return { clock, server, world, instance, authorization };
}

test("each refresh token is used once, and the next one is what the last use gave", async () => {
  const { clock, server, instance, authorization } = rotating();
  await instance.start();
  expect(await authorization()).toBe("Bearer xoxe.xoxb-1-access-1");
  await clock.advanceAndSettle(11 * 3_600_000);
  expect(await authorization()).toBe("Bearer xoxe.xoxb-1-access-2");
  await Promise.all([instance.refreshToken(), instance.refreshToken()]);
  expect(server.calls.map(({ body }) => new URLSearchParams(body).get("refresh_token"))).toEqual([
    "xoxe-1-refresh-0",
    "xoxe-1-refresh-1",
    "xoxe-1-refresh-2",
  ]);
  expect(server.calls.every(({ url }) => url === "https://slack.com/api/oauth.v2.access")).toBe(
    true,
  );
  await instance.stop();
});

test("a failed exchange uses up no refresh token of ours", async () => {
  const { clock, server, instance, authorization } = rotating();
  const { respond } = server;
  server.respond = () => new Response("", { status: 503 });
  await instance.start();
  await expect(authorization()).rejects.toMatchObject({ status: 503 });
  server.respond = respond;
  await clock.advanceAndSettle(2_000);
  expect(await authorization()).toBe("Bearer xoxe.xoxb-1-access-1");
  expect(server.calls.map(({ body }) => new URLSearchParams(body).get("refresh_token"))).toEqual([
    "xoxe-1-refresh-0",
    "xoxe-1-refresh-0",
  ]);
  await instance.stop();
});

test.each([
  [
    () => Response.json({ ok: false, error: "invalid_refresh_token" }),
    502,
    "invalid_refresh_token",
  ],
  [() => Response.json({ ok: false, error: "internal_error" }), 503, "internal_error"],
  [() => Response.json({ ok: false, error: "<b>xoxe-1-refresh-0" }), 503, "an error"],
  [() => Response.json({ ok: true, access_token: "xoxb-1" }), 503, "is token rotation on"],
  [() => new Response("<html>"), 503, "holds no tokens"],
])("%s is told in the log, and in the status", async (respond, status, why) => {
  const { server, world, instance, authorization } = rotating();
  server.respond = respond;
  await instance.start();
  await expect(authorization()).rejects.toMatchObject({ status });
  expect(world.lines.join("")).toContain(why);
  expect(world.lines.join("")).not.toContain("xoxe-1-refresh-0");
  await instance.stop();
});
