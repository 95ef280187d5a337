/** discord.js's client of the HTTP API under `svc run`: a placeholder token, the real host. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Machine } from "../support/clients/machine.ts";
import { DiscordServer } from "../support/discord-server.ts";
import type { Received } from "../support/services.ts";
import { serviceCalls, Tries } from "../support/tried.ts";

const TOKEN = "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.the-real-token-of-the-bot";
const CHANNEL = "41771983423143937";
const server = new DiscordServer(TOKEN);
let machine: Machine;
let tries: Tries;
let received: readonly Received[];

beforeAll(async () => {
  machine = await Machine.start({
    hosts: ["discord.com"],
    resources: [
      {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "discord" },
        stringData: { token: TOKEN },
      },
      {
        apiVersion: "svc.io/v1",
        kind: "Provider",
        metadata: { name: "discord" },
        spec: {
          type: "discord",
          auth: { type: "token", secretRef: "discord" },
          policy: {
            allow: ["messages:*", "reactions:write", "users:read", "guilds:*"],
            deny: ["messages:delete"],
          },
          scope: { channels: [CHANNEL] },
        },
      },
      {
        apiVersion: "svc.io/v1",
        kind: "Agent",
        metadata: { name: "assistant" },
        spec: { models: [], providers: ["discord"] },
      },
    ],
  });
  machine.outside.handler = (request, response) => server.serve(request, response);
  const command = [machine.node, machine.client("discord-rest.mjs")];
  tries = new Tries(await machine.run(command, { agent: "assistant" }));
  received = machine.outside.requests;
}, 300_000);

afterAll(() => machine?.stop());

test("asks who it is, posts, replies, reads, edits and reacts", () => {
  expect(tries.value("who")).toBe("the-bot");
  expect(tries.value("post")).toEqual(["1", "Hello"]);
  expect(tries.value("reply")).toEqual({ message_id: "1", channel_id: CHANNEL });
  expect(tries.value("read")).toEqual(["Reply", "Hello"]);
  expect(tries.value("edit")).toBe("Edited");
  expect(tries.of("react")).not.toHaveProperty("status");
  expect(tries.of("discord's own error")).toEqual({
    name: "discord's own error",
    status: 404,
    code: 10_008,
    message: "Unknown Message",
  });
});

test.each([
  ["denied action", "action_denied", "The action messages:delete is not allowed for discord."],
  ["denied channel", "out_of_scope", "5 is outside the scope of discord."],
  ["denied forward", "out_of_scope", "5 is outside the scope of discord."],
  ["denied file", "out_of_scope", "the scope of discord"],
  ["denied guild", "unresolved_action", "is not a known operation"],
])("%s: shows why", (name, code, message) => {
  expect(tries.of(name)).toMatchObject({
    status: 403,
    code,
    message: expect.stringContaining(message) as unknown,
  });
});

test("sends the real token alone, and shows the agent none", () => {
  expect(received.length).toBe(7);
  for (const { headers } of received) expect(headers.authorization).toBe(`Bot ${TOKEN}`);
  expect(JSON.stringify(received.map(({ url, rawHeaders }) => [url, rawHeaders]))).not.toMatch(
    /agents-own/,
  );
  expect(tries.output).not.toContain(TOKEN);
});

test("records what was done and what was denied", () => {
  const records = serviceCalls(machine.stack.stateDir);
  expect(records).toContainEqual(
    expect.objectContaining({
      workload: "default/assistant",
      binding: "discord",
      action: "messages:write",
      resource: CHANNEL,
      allowed: true,
    }),
  );
  expect(records).toContainEqual(
    expect.objectContaining({ action: "messages:delete", allowed: false }),
  );
  expect(JSON.stringify(records)).not.toContain(TOKEN);
});
