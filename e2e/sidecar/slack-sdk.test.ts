/**
 * Slack's own SDK, under `svc run`: a placeholder token, the real host name. The app has token
 * rotation, so that each refresh token works once.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Machine } from "../support/clients/machine.ts";
import type { Received } from "../support/services.ts";
import { SlackServer } from "../support/slack-server.ts";
import { serviceCalls, Tries } from "../support/tried.ts";

const APP = {
  clientId: "1234567890.1234567890",
  clientSecret: "the0secret1of2the3app4of5these6t",
  refreshToken: "xoxe-1-the-first-refresh-token",
};
const server = new SlackServer(APP);
let machine: Machine;
let tries: Tries;
let received: readonly Received[];

beforeAll(async () => {
  machine = await Machine.start({
    hosts: ["slack.com"],
    resources: [
      { apiVersion: "v1", kind: "Secret", metadata: { name: "slack" }, stringData: APP },
      {
        apiVersion: "svc.io/v1",
        kind: "Provider",
        metadata: { name: "slack" },
        spec: {
          type: "slack",
          auth: { type: "oauth2", secretRef: "slack" },
          policy: {
            allow: ["auth:read", "chat:write", "channels:*", "reactions:write"],
            deny: ["chat:delete"],
          },
          scope: { channels: ["C0123456789"] },
        },
      },
      {
        apiVersion: "svc.io/v1",
        kind: "Agent",
        metadata: { name: "assistant" },
        spec: { models: [], providers: ["slack"] },
      },
    ],
  });
  machine.outside.handler = (request, response) => server.serve(request, response);
  tries = new Tries(await run());
  received = [...machine.outside.requests];
}, 300_000);

afterAll(() => machine?.stop());

function run(): ReturnType<Machine["run"]> {
  const command = [machine.node, machine.client("slack-sdk.mjs")];
  return machine.run(command, { agent: "assistant" });
}

test("asks who it is, posts, reads and replies", () => {
  expect(tries.value("who")).toBe("U0BOT");
  expect(tries.value("post")).toBe("1700000000.000001");
  expect(tries.value("blocks")).toEqual([
    { type: "section", text: { type: "mrkdwn", text: "*Hello*" } },
  ]);
  expect(tries.value("history")).toEqual(["Hello", "Hello"]);
  expect(tries.value("reply")).toBe(true);
  expect(tries.of("slack's own error")).toMatchObject({ code: "message_not_found" });
});

test.each([
  ["denied action", "action_denied", "The action chat:delete is not allowed for slack."],
  ["denied channel", "out_of_scope", "C9999999999 is outside the scope of slack."],
  ["denied list", "out_of_scope", "outside the scope of slack."],
  ["denied method", "unresolved_action", "not a known method"],
])("%s: shows why", (name, code, message) => {
  expect(tries.of(name)).toMatchObject({
    status: 403,
    code,
    message: expect.stringContaining(message) as unknown,
  });
});

test("sends only tokens that Slack issued, and shows the agent none", () => {
  const calls = received.filter(({ url }) => url !== "/api/oauth.v2.access");
  expect(calls.length).toBeGreaterThan(5);
  const [first = ""] = server.issued;
  for (const { headers } of calls) expect(headers.authorization).toBe(`Bearer ${first}`);
  const seen = received.map(({ url, rawHeaders, body }) => [url, rawHeaders, body.toString()]);
  expect(JSON.stringify(seen)).not.toMatch(/agents-own|secret plans/);
  for (const secret of [...server.issued, ...server.refreshTokens, APP.clientSecret])
    expect(tries.output).not.toContain(secret);
});

test("a second run goes on with the kept tokens, which the agent cannot read", async () => {
  const again = new Tries(await run());
  expect(again.value("who")).toBe("U0BOT");
  expect(server.issued.size).toBe(1);
  const dir = path.join(machine.stack.stateDir, "tokens");
  expect(readdirSync(dir)).toEqual(["default.slack.json"]);
  const file = path.join(dir, "default.slack.json");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readFileSync(file, "utf8")).toContain(server.refreshTokens.at(-1));
  const { stdout } = await machine.sh(`cat ${file}; ls -A ${dir}`, { agent: "assistant" });
  expect(stdout).toBe("");
});

test("records what was done and what was denied", () => {
  const records = serviceCalls(machine.stack.stateDir);
  expect(records).toContainEqual(
    expect.objectContaining({
      workload: "default/assistant",
      binding: "slack",
      action: "chat:write",
      resource: "C0123456789",
      allowed: true,
    }),
  );
  expect(records).toContainEqual(
    expect.objectContaining({ action: "chat:delete", allowed: false }),
  );
  const text = JSON.stringify(records);
  for (const secret of [...server.issued, ...server.refreshTokens, APP.clientSecret, "Hello"])
    expect(text).not.toContain(secret);
});
