import { expect, test } from "vitest";
import { request } from "../testing.ts";
import { redactPath, resolveDiscord } from "./resolve.ts";
import { ROUTES, TOKEN_ROUTES } from "./routes.ts";

function told(line: string): string {
  const [method = "", path = ""] = line.split(" ");
  const { resolution, authenticated } = resolveDiscord({
    ...request("GET https://discord.com/"),
    method,
    path,
  });
  if (resolution.kind === "unresolved") return "unresolved";
  const [{ action, resources } = { action: "", resources: [] }] = resolution.actions;
  return `${action} ${resources.map((each) => (each.kind === "scoped" ? each.value : each.kind)).join("+")}${authenticated ? "" : " (no token)"}`;
}

test("each line of the tables is an operation of its category", () => {
  for (const [category, lines] of Object.entries({ ...ROUTES, ...TOKEN_ROUTES })) {
    for (const line of lines) {
      const [methods = "", path = ""] = line.split(" ");
      for (const method of methods.split(",")) {
        const concrete = path.replaceAll(/\{\w+:int\}/g, "4711").replaceAll(/\{\w+\}/g, "aZ-_09");
        expect(told(`${method} /api/v10${concrete}`), line).toContain(
          `${category}:${method === "GET" ? "read" : "write"} `,
        );
      }
    }
  }
});

test.each([
  ["POST /api/v10/channels/1/messages", "messages:write 1"],
  ["GET /api/v9/channels/1/messages/2", "messages:read 1"],
  ["PUT /api/v10/channels/1/messages/2/reactions/%F0%9F%94%A5/@me", "reactions:write 1"],
  ["POST /api/v10/channels/1/followers", "channels:write unscopable"],
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
