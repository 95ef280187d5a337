/**
 * Google's own client of Cloud Storage, under `svc run`: a placeholder token, real host names, no
 * custom endpoint. A server that verifies the service account's signature issues the real token.
 */
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Machine } from "../support/clients/machine.ts";
import { GoogleServer } from "../support/google-server.ts";
import type { Received } from "../support/services.ts";
import { serviceCalls, Tries } from "../support/tried.ts";

const EMAIL = "robot@my-project.iam.gserviceaccount.com";
const HOSTS = ["storage.googleapis.com", "oauth2.googleapis.com"];
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();

const server = new GoogleServer(EMAIL, createPublicKey(privateKey));
let machine: Machine;
let tries: Tries;
let received: readonly Received[];

beforeAll(async () => {
  machine = await Machine.start({
    hosts: HOSTS,
    resources: [
      {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "gcp" },
        stringData: {
          serviceAccount: JSON.stringify({
            type: "service_account",
            project_id: "my-project",
            private_key_id: "1",
            private_key: pem,
            client_email: EMAIL,
            token_uri: "https://oauth2.googleapis.com/token",
          }),
        },
      },
      {
        apiVersion: "svc.io/v1",
        kind: "Provider",
        metadata: { name: "gcp" },
        spec: {
          type: "gcp",
          hosts: HOSTS,
          auth: { type: "service-account", secretRef: "gcp" },
          config: { bucketProjects: "reports=my-project payroll=other-project" },
          policy: { allow: ["storage.*"], deny: ["storage.objects.delete"] },
          scope: { projects: ["my-project"] },
        },
      },
      {
        apiVersion: "svc.io/v1",
        kind: "Agent",
        metadata: { name: "analyst" },
        spec: { models: [], providers: ["gcp"] },
      },
    ],
  });
  machine.outside.handler = (request, response) => server.serve(request, response);
  const command = [machine.node, machine.client("gcp-storage.mjs")];
  tries = new Tries(await machine.run(command, { agent: "analyst" }));
  received = machine.outside.requests;
}, 300_000);

afterAll(() => machine?.stop());

test.each(["plain.txt", "a folder/ünï + 1?#%.txt", "a//b", "x/"])(
  "puts and gets the object %j",
  (name) => {
    expect(tries.value(`object ${name}`)).toBe(`content of ${name}`);
  },
);

test("uploads in a resumable session, lists and copies", () => {
  expect(tries.value("resumable")).toEqual([true, 1_000_000, "text/plain"]);
  expect(tries.value("list")).toContain("a folder/ünï + 1?#%.txt");
  expect(tries.value("copy")).toBe("content of plain.txt");
  expect(tries.of("missing")).toMatchObject({ status: 404 });
});

test.each([
  ["denied action", "The action storage.objects.delete is not allowed for gcp."],
  ["denied bucket", "other-project is outside the scope of gcp."],
  ["denied copy", "other-project is outside the scope of gcp."],
  ["denied key", "answers with credentials"],
  ["object ..", "can be read in more than one way"],
])("%s: shows why", (name, message) => {
  expect(tries.of(name)).toMatchObject({
    status: 403,
    message: expect.stringContaining(message) as unknown,
  });
});

test("sends only tokens that Google issued, and shows the agent none", () => {
  const calls = received.filter(({ host }) => host === "storage.googleapis.com");
  expect(calls.length).toBeGreaterThan(15);
  const tokens = new Set(calls.map(({ headers }) => headers.authorization));
  expect([...tokens]).toEqual([...server.issued].map((token) => `Bearer ${token}`));
  expect(JSON.stringify(received.map(({ url, rawHeaders }) => [url, rawHeaders]))).not.toMatch(
    /agents-own|payroll/,
  );
  for (const token of server.issued) expect(tries.output).not.toContain(token);
  expect(tries.output).not.toContain(pem.split("\n")[1]);
});

test("records what was done and what was denied", () => {
  const records = serviceCalls(machine.stack.stateDir);
  expect(records).toContainEqual(
    expect.objectContaining({
      workload: "default/analyst",
      binding: "gcp",
      action: "storage.objects.insert",
      resource: "my-project",
      allowed: true,
    }),
  );
  expect(records).toContainEqual(
    expect.objectContaining({ action: "storage.objects.delete", allowed: false }),
  );
  const text = JSON.stringify(records);
  for (const token of server.issued) expect(text).not.toContain(token);
});
