import { describe, expect, test } from "vitest";
import { request } from "../testing.ts";
import { JUDGED_BY_BODY, REACHES_FURTHER, WITHIN } from "./reach.ts";
import { redactPath, resolveDiscord } from "./resolve.ts";
import { ROUTES, TOKEN_ROUTES } from "./routes.ts";

const JSON_TYPE = { "content-type": "application/json" };

const REACHES_FURTHER_SET = new Set(Object.keys(REACHES_FURTHER));

function told(
  line: string,
  body?: object | string,
  headers: Readonly<Record<string, string>> = JSON_TYPE,
): string {
  const [method = "", path = ""] = line.split(" ");
  const text = typeof body === "object" ? JSON.stringify(body) : body;
  const sent = text === undefined ? {} : { headers, body: text };
  const { resolution, authenticated } = resolveDiscord({
    ...request("GET https://discord.com/", sent),
    method,
    path,
  });
  if (resolution.kind === "unresolved") return "unresolved";
  const [{ action, resources } = { action: "", resources: [] }] = resolution.actions;
  return (
    `${action} ` +
    resources.map((each) => (each.kind === "scoped" ? each.value : each.kind)).join("+") +
    (authenticated ? "" : " (no token)")
  );
}

test("each line of the tables is an operation of its category", () => {
  for (const [category, lines] of Object.entries({ ...ROUTES, ...TOKEN_ROUTES })) {
    for (const line of lines) {
      const [methods = "", path = ""] = line.split(" ");
      for (const method of methods.split(",")) {
        const concrete = path.replaceAll(/\{\w+:int\}/g, "4711").replaceAll(/\{\w+\}/g, "aZ-_09");
        const deletes = method === "DELETE" || path.endsWith("/bulk-delete");
        const verb = method === "GET" ? "read" : deletes ? "delete" : "write";
        expect(told(`${method} /api/v10${concrete}`), line).toContain(`${category}:${verb} `);
      }
    }
  }
});

test.each([
  ["POST /api/v10/channels/1/messages", "messages:write 1+unscopable"],
  ["POST /api/v10/channels/1/messages/2/crosspost", "messages:write 1+unscopable"],
  ["POST /api/v10/channels/1/invites", "invites:write 1+unscopable"],
  ["GET /api/v10/channels/1/threads/archived/public", "threads:read 1+unscopable"],
  ["GET /api/v10/channels/1/threads/archived/private", "threads:read 1+unscopable"],
  ["GET /api/v9/channels/1/messages/2", "messages:read 1"],
  ["PUT /api/v10/channels/1/messages/2/reactions/%F0%9F%94%A5/@me", "reactions:write 1"],
  ["POST /api/v10/channels/1/followers", "channels:write 1+unscopable"],
  ["GET /api/v10/guilds/1/channels", "channels:read unscopable"],
  ["POST /api/v10/users/@me/channels", "users:write unscopable"],
  ["GET /api/v10/users/@me", "users:read none"],
  ["PATCH /api/v10/users/@me", "users:write unscopable"],
  ["GET /api/v10/gateway/bot", "gateway:read none"],
  ["POST /api/v10/webhooks/1/s3cr3t", "webhooks:write unscopable (no token)"],
  ["POST /api/v10/interactions/1/s3cr3t/callback", "interactions:write unscopable (no token)"],
])("%s is %s", (line, expected) => {
  expect(told(line)).toBe(expected);
});

test.each([
  "GET /api/channels/1",
  "GET /api/v6/channels/1",
  "GET /api/v100/channels/1",
  "GET /channels/1",
  "GET /api/v10/channels/@me",
  "GET /api/v10/channels/1/../2",
  "GET /api/v10/channels/%31",
  "GET /api/v10/channels/1%2Fmessages",
  "GET /api/v10//channels/1",
  "GET /api/v10/channels/1/",
  "GET /api/v10/channels/1;2",
  "POST /api/v10/oauth2/token",
  "POST /api/v10/auth/login",
  "get /api/v10/channels/1",
  "POST /api/v10/channels/1/messages/2",
])("%s is not understood", (line) => {
  expect(told(line)).toBe("unresolved");
});

test.each([
  ["DELETE", "/api/v10/channels/1/messages/2", "messages:delete", ["messages:write"]],
  ["POST", "/api/v10/channels/1/messages/bulk-delete", "messages:delete", ["messages:write"]],
  ["DELETE", "/api/v10/channels/1", "channels:delete", ["channels:write"]],
  ["PATCH", "/api/v10/channels/1/messages/2", "messages:write", undefined],
])("%s %s is %s, which %j covers", (method, path, action, broader) => {
  const sent = { ...request("GET https://discord.com/"), method, path };
  const { resolution } = resolveDiscord(sent);
  expect(resolution).toMatchObject({ kind: "resolved", actions: [{ action }] });
  expect(resolution.kind === "resolved" && resolution.actions[0]?.broader).toEqual(broader);
});

test("every route that names a channel stands in exactly one table of how far it reaches", () => {
  const tables = [WITHIN, REACHES_FURTHER_SET, JUDGED_BY_BODY];
  const routes = Object.values(ROUTES)
    .flat()
    .flatMap((line) => {
      const [methods = "", path = ""] = line.split(" ");
      const template = path.replaceAll(/:[^}]+\}/g, "}");
      return methods.split(",").map((method) => `${method} ${template}`);
    })
    .filter((route) => route.includes("{channel}"));
  expect(routes.length).toBeGreaterThan(40);
  expect(routes.filter((route) => tables.filter((t) => t.has(route)).length !== 1)).toEqual([]);
  const known = new Set(routes);
  expect(tables.flatMap((table) => [...table]).filter((route) => !known.has(route))).toEqual([]);
});

describe("channels that a body names", () => {
  const MESSAGES = "POST /api/v10/channels/1/messages";
  const FOLLOWERS = "POST /api/v10/channels/1/followers";
  const THREADS = "POST /api/v10/channels/1/threads";
  const PATCH = "PATCH /api/v10/channels/1";
  test.each<[string, object | string, string]>([
    [MESSAGES, { content: "hi" }, "1"],
    [MESSAGES, { message_reference: { message_id: "2" } }, "1"],
    [MESSAGES, { message_reference: { message_id: "2", channel_id: "1" } }, "1+1"],
    [MESSAGES, { message_reference: { type: 1, message_id: "2", channel_id: "9" } }, "1+9"],
    [MESSAGES, { message_reference: { type: 0, message_id: "2", channel_id: "9" } }, "1+9"],
    [MESSAGES, { message_reference: { type: 1, message_id: "2" } }, "1+unscopable"],
    [MESSAGES, { message_reference: { type: "1", message_id: "2" } }, "1+unscopable"],
    [MESSAGES, { message_reference: { type: 1, channel_id: 9 } }, "1+unscopable"],
    [MESSAGES, { message_reference: { type: 1, channel_id: ["9"] } }, "1+unscopable"],
    [MESSAGES, { message_reference: [{ type: 1, channel_id: "9" }] }, "1+unscopable"],
    [MESSAGES, { message_reference: null }, "1"],
    [MESSAGES, '{"message_reference":null,"message_reference":{"channel_id":"9"}}', "1+unscopable"],
    [MESSAGES, "{", "1+unscopable"],
    [MESSAGES, "[]", "1+unscopable"],
    [FOLLOWERS, { webhook_channel_id: "9" }, "1+9"],
    [FOLLOWERS, {}, "1+unscopable"],
    [FOLLOWERS, { webhook_channel_id: 9 }, "1+unscopable"],
    [THREADS, { name: "x", message: { content: "y" } }, "1"],
    [THREADS, { message: { message_reference: { type: 1, channel_id: "9" } } }, "1+9"],
    [PATCH, { name: "x" }, "1"],
    [PATCH, { parent_id: null }, "1"],
    [PATCH, { parent_id: "9" }, "1+9"],
    [PATCH, { parent_id: 9 }, "1+unscopable"],
  ])("%s %j is about %s", (line, body, expected) => {
    expect(told(line, body).split(" ")[1]).toBe(expected);
  });

  test.each([
    { "content-type": "multipart/form-data; boundary=x" },
    { "content-type": "application/x-www-form-urlencoded" },
    { "content-type": "application/json, text/plain" },
    { "content-type": "application/json", "content-encoding": "gzip" },
    {},
  ])("a body that is declared as %j cannot be judged", (headers) => {
    expect(told(MESSAGES, { content: "hi" }, headers)).toBe("messages:write 1+unscopable");
  });
});

test("the tokens of webhooks and interactions are taken out of a path", () => {
  expect(redactPath("/api/v10/webhooks/1/s3cr3t/messages/@original")).toBe(
    "/api/v10/webhooks/1/[redacted]/messages/@original",
  );
  expect(redactPath("/api/v10/interactions/1/s3cr3t/callback")).toBe(
    "/api/v10/interactions/1/[redacted]/callback",
  );
  expect(redactPath("/api/v10/Webhooks/x/s3cr3t")).toBe("/api/v10/Webhooks/x/[redacted]");
  expect(redactPath("/api/v10/webhooks/1")).toBe("/api/v10/webhooks/1");
  expect(redactPath("/api/v10/channels/1/webhooks")).toBe("/api/v10/channels/1/webhooks");
});
