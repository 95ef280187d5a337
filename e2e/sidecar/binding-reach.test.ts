/**
 * The reach of a scope, through the real Envoy: bodies that may name another repository, channel,
 * project or container are read and evaluated, and other bodies still stream.
 */
import { generateKeyPairSync } from "node:crypto";
import https from "node:https";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Outside } from "../support/services.ts";
import { Sidecar } from "../support/sidecar.ts";
import { until } from "../support/wait.ts";

const MIB = 1024 * 1024;

const binding = (name: string, auth: object, scope: object, config: object = {}): object => ({
  name,
  type: name,
  auth,
  config,
  policy: { deny: [], httpRules: [] },
  scope,
  audit: { enforcement: "enforce", logRequests: false },
});

const BINDINGS = [
  binding("github", { type: "token", env: { token: "T" } }, { repositories: ["octo/public"] }),
  binding("discord", { type: "token", env: { token: "T" } }, { channels: ["1"] }),
  binding("slack", { type: "api-key", env: { token: "T" } }, { channels: ["C1"] }),
  binding(
    "gcp",
    { type: "service-account", env: { serviceAccount: "GCP" } },
    { projects: ["p-1"] },
    { bucketProjects: "reports=p-1" },
  ),
  binding(
    "azure",
    { type: "client-secret", env: { tenantId: "TENANT", clientId: "CLIENT", clientSecret: "T" } },
    { containers: ["reports/public"] },
  ),
];

const { privateKey } = generateKeyPairSync("rsa", {
  modulusLength: 2_048,
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});

let outside: Outside;
let sidecar: Sidecar;

beforeAll(async () => {
  outside = await Outside.start([
    "api.github.com",
    "discord.com",
    "slack.com",
    "*.googleapis.com",
    "*.blob.core.windows.net",
    "login.microsoftonline.com",
  ]);
  outside.handler = (_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end('{"access_token":"ya29.token","expires_in":3600,"token_type":"Bearer"}');
  };
  sidecar = await Sidecar.start({
    outside,
    bindings: BINDINGS,
    secrets: {
      T: "the-real-token-0123456789",
      TENANT: "aaaaaaaa-1111-2222-3333-444444444444",
      CLIENT: "bbbbbbbb-1111-2222-3333-444444444444",
      GCP: JSON.stringify({
        type: "service_account",
        client_email: "agent@p-1.iam.gserviceaccount.com",
        private_key_id: "1",
        private_key: privateKey,
        token_uri: "https://oauth2.googleapis.com/token",
      }),
    },
  });
});

afterAll(async () => {
  await sidecar?.stop();
  await outside?.close();
});

beforeEach(() => {
  outside.requests.length = 0;
  outside.streaming = undefined;
});

const JSON_TYPE = "application/json";

/** The answer's status; `parts` are sent one by one. */
async function send(
  line: string,
  headers: Readonly<Record<string, string>>,
  ...parts: readonly (string | Buffer)[]
): Promise<number> {
  const [method = "", url = ""] = line.split(" ");
  const { host, pathname, search } = new URL(url);
  return new Promise((resolve, reject) => {
    const request = https.request({
      ca: sidecar.bundle,
      agent: false,
      host: "127.0.0.1",
      port: sidecar.httpsPort,
      servername: host,
      method,
      path: pathname + search,
      headers: { host, ...headers },
    });
    request.once("response", (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.once("error", reject);
    for (const part of parts) request.write(part);
    request.end();
  });
}

const arrived = (): readonly string[] =>
  outside.requests
    .filter(({ host }) => !/^(?:oauth2|login)\./.test(host))
    .map(({ host, body }) => `${host} ${body.toString()}`);

const MESSAGES = "POST https://discord.com/api/v10/channels/1/messages";
const TOPICS = "POST https://pubsub.googleapis.com/v1/projects/p-1/topics/t:publish";
const SUBSCRIPTIONS = "PUT https://pubsub.googleapis.com/v1/projects/p-1/subscriptions/s";
const PULLS = "POST https://api.github.com/repos/octo/public/pulls";
const MESSAGE = "POST https://slack.com/api/chat.postMessage";

describe("a body is judged by what it names, and arrives as it was", () => {
  test.each([
    [PULLS, { head: "dev", base: "main", title: "x" }, 200],
    [PULLS, { head: "other:dev", base: "main", title: "x" }, 403],
    [PULLS, { head: "dev", head_repo: "secret", base: "main" }, 403],
    ["PATCH https://api.github.com/repos/octo/public/issues/1", { state: "closed" }, 200],
    ["PATCH https://api.github.com/repos/octo/public/issues/1", { duplicate_issue_id: 1 }, 403],
    [MESSAGES, { content: "hi" }, 200],
    [MESSAGES, { message_reference: { type: 1, channel_id: "9", message_id: "1" } }, 403],
    ["POST https://discord.com/api/v9/channels/1/followers", { webhook_channel_id: "9" }, 403],
    [MESSAGE, { channel: "C1", text: "hi" }, 200],
    [MESSAGE, { channel: "C1", text: "https://t.slack.com/archives/C9/p1" }, 403],
    [TOPICS, { messages: [{ data: "aGk=" }] }, 200],
    [SUBSCRIPTIONS, { topic: "projects/p-1/topics/t" }, 200],
    [SUBSCRIPTIONS, { topic: "projects/secret/topics/t" }, 403],
  ])("%s %j: %i", async (line, body, status) => {
    const text = JSON.stringify(body);
    expect(await send(line, { "content-type": JSON_TYPE }, text)).toBe(status);
    expect(arrived()).toEqual(
      status === 200 ? [`${new URL(line.split(" ")[1] ?? "").host} ${text}`] : [],
    );
  });

  test("in chunks too, and without a length", async () => {
    const headers = { "content-type": JSON_TYPE, "transfer-encoding": "chunked" };
    const forward = '{"message_reference":{"type":1,"channel_id":"9"}}';
    expect(await send(MESSAGES, headers, forward.slice(0, 9), forward.slice(9))).toBe(403);
    expect(await send(MESSAGES, headers, '{"content":', '"hi"}')).toBe(200);
    expect(arrived()).toEqual(['discord.com {"content":"hi"}']);
  });

  test.each([
    ["multipart/form-data; boundary=x", "--x--"],
    ["Multipart/Form-Data; boundary=x", "--x--"],
    ["text/plain", '{"content":"hi"}'],
    ["application/x-www-form-urlencoded", "content=hi"],
  ])("a message declared as %s cannot be judged", async (type, body) => {
    expect(await send(MESSAGES, { "content-type": type }, body)).toBe(403);
    expect(arrived()).toEqual([]);
  });

  test("above the limit it is refused", async () => {
    const large = JSON.stringify({ content: "x".repeat(2 * MIB) });
    expect(await send(MESSAGES, { "content-type": JSON_TYPE }, large)).toBe(413);
    expect(arrived()).toEqual([]);
  });
});

test.each([
  ["application/json", `/upload/storage/v1/b/reports/o?uploadType=media&name=a`],
  ["application/octet-stream", `/upload/storage/v1/b/reports/o?uploadType=media&name=a`],
])("an upload of %s streams: the far end answers before it is over", async (type, path) => {
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  outside.streaming = (request, response) => {
    request.once("data", () => resolve());
    request.on("end", () => response.writeHead(200).end());
    request.resume();
  };
  const host = "storage.googleapis.com";
  const status = new Promise<number>((done, reject) => {
    const request = https.request({
      ca: sidecar.bundle,
      agent: false,
      host: "127.0.0.1",
      port: sidecar.httpsPort,
      servername: host,
      method: "POST",
      path,
      headers: { host, "content-type": type, "transfer-encoding": "chunked" },
    });
    request.once("response", (response) => {
      response.resume();
      done(response.statusCode ?? 0);
    });
    request.once("error", reject);
    request.write("x".repeat(1_000));
    // If it were buffered, the first bytes would not arrive before the last.
    void begun.then(() => request.end("y"));
  });
  expect(await status).toBe(200);
});

test("a copy names its source in the record, and is held to its container", async () => {
  const target = "PUT https://reports.blob.core.windows.net/public/b";
  const copy = (from: string): Promise<number> =>
    send(target, {
      "x-ms-copy-source": `https://reports.blob.core.windows.net/${from}`,
      "content-length": "0",
    });
  expect(await copy("public/a")).toBe(200);
  expect(await copy("secret/key.txt")).toBe(403);
  expect(outside.requests.filter(({ host }) => host.startsWith("reports."))).toHaveLength(1);
  // Denied requests do not wait for their records.
  const records = await until(
    () => {
      const found = sidecar
        .audit()
        .filter(({ fields }) => fields["binding"] === "azure" && fields["phase"] === "request");
      return found.length >= 2 ? found : undefined;
    },
    { what: "both records" },
  );
  expect(records.map(({ fields }) => [fields["allowed"], fields["resource"]])).toEqual([
    [true, ["reports/public/b", "reports/public/a"]],
    [false, ["reports/public/b", "reports/secret/key.txt"]],
  ]);
});
