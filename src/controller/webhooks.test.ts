import { afterEach, beforeEach, expect, test } from "vitest";
import { KubeClient } from "../kubernetes/client.ts";
import { FakeApiServer } from "../kubernetes/testing.ts";
import { makeWebhookToken, webhookTokenOf, webhookUrl } from "./webhooks.ts";

const PATH = "/api/v1/namespaces/team/secrets/svc-webhook-writer";
const agent = { namespace: "team", name: "writer" };
const owner = { apiVersion: "svc.io/v1", kind: "Agent", name: "writer", uid: "uid-1" };

let server: FakeApiServer;
let client: KubeClient;

beforeEach(async () => {
  server = await FakeApiServer.start();
  client = new KubeClient(server.connect(), "svc-controller");
});

afterEach(() => server.stop());

test("a token has 256 random bits, and its Secret is the agent's", async () => {
  await makeWebhookToken(client, agent, owner, undefined);
  const token = webhookTokenOf(server.get(PATH)) ?? "";
  expect(Buffer.from(token, "base64url")).toHaveLength(32);
  expect(server.get(PATH)?.metadata.ownerReferences).toEqual([owner]);
  server.remove(PATH);
  await makeWebhookToken(client, agent, owner, undefined);
  expect(webhookTokenOf(server.get(PATH))).not.toBe(token);
});

test("of two writers one makes the token", async () => {
  await makeWebhookToken(client, agent, owner, undefined);
  const token = webhookTokenOf(server.get(PATH));
  // The other has not seen it yet.
  await makeWebhookToken(client, agent, owner, undefined);
  expect(webhookTokenOf(server.get(PATH))).toBe(token);
});

test.each(["", "c2hvcnQ=", Buffer.from("../".repeat(14)).toString("base64")])(
  "a Secret that has lost its token gets one: %s",
  async (token) => {
    const metadata = { name: "svc-webhook-writer" };
    const found = server.put(PATH, { apiVersion: "v1", kind: "Secret", metadata, data: { token } });
    expect(webhookTokenOf(found)).toBeUndefined();
    await makeWebhookToken(client, agent, owner, found);
    const made = webhookTokenOf(server.get(PATH));
    expect(made).toBeDefined();
    // A writer that has not seen it changes nothing.
    await makeWebhookToken(client, agent, owner, found);
    expect(webhookTokenOf(server.get(PATH))).toBe(made);
  },
);

test("the address has one slash between its parts", () => {
  expect(webhookUrl("https://svc.example/", agent, "t")).toBe(
    "https://svc.example/webhooks/team/writer/t",
  );
});
