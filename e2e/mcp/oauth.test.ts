/** The gateway's credentials at MCP servers, through the real Envoy, with a real token server. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { TestTokenServer, tokenReply } from "../../src/mcp/testing-token-server.ts";
import { mcpKeyYaml, mcpProviderYaml } from "../support/mcp/resources.ts";
import { rawKey } from "../support/resources.ts";
import { Stack } from "../support/stack.ts";

/** An MCP server that demands a credential, and sends what it got in headers of its answer. */
class Upstream {
  readonly requests: http.IncomingMessage[] = [];
  /** Returns whether a request is let in. */
  accepts: (headers: http.IncomingHttpHeaders) => boolean = () => true;
  readonly #server = http.createServer((request, response) => void this.#serve(request, response));

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    this.requests.push(request);
    const { headers } = request;
    const { id } = JSON.parse(await text(request)) as { id: number };
    if (!this.accepts(headers)) {
      response.writeHead(401, {
        "www-authenticate": `Bearer error="invalid_token", sent="${headers.authorization ?? ""}"`,
      });
      return void response.end();
    }
    const sent = [headers.authorization, headers["x-tracker-key"]].filter(Boolean).join(" ");
    response.writeHead(200, {
      "content-type": "application/json",
      "x-echo": sent,
      "x-echo-value": (sent.split(/[ =]/).at(-1) ?? "").trim() || "none",
      "x-kept": "yes",
    });
    const content = [{ type: "text", text: "done" }];
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result: { content } }));
  }
}

const STATIC_TOKEN = "static-token-of-the-server";
/** Each is for the Provider of its name. */
const KEYS = ["oauth", "renewed", "usual", "named"];
const upstream = new Upstream();
let tokens: TestTokenServer;
let dir: string;
let stack: Stack;

const secretYaml = (name: string, values: object): string =>
  JSON.stringify({ apiVersion: "v1", kind: "Secret", metadata: { name }, stringData: values });

beforeAll(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-e2e-oauth-"));
  tokens = await TestTokenServer.start();
  writeFileSync(path.join(dir, "ca.pem"), tokens.authorityPem);
  await upstream.start();
  const { url } = upstream;
  const client = { clientId: "the-client", clientSecret: "the-client-secret" };
  stack = await Stack.start({
    files: {
      "secrets.yaml": [
        secretYaml("client", client),
        secretYaml("static", { token: STATIC_TOKEN }),
      ].join("\n---\n"),
      "providers.yaml": [
        ...["oauth", "renewed"].map((name) =>
          mcpProviderYaml(name, {
            url,
            spec: [
              "auth: {type: oauth2, secretRef: client}",
              `config: {tokenUrl: "${tokens.url}", scope: read, resource: "${url}"}`,
            ],
          }),
        ),
        mcpProviderYaml("usual", { url, spec: ["auth: {type: api-key, secretRef: static}"] }),
        mcpProviderYaml("named", {
          url,
          spec: [
            "auth: {type: api-key, secretRef: static}",
            'config: {header: X-Tracker-Key, prefix: "Token token="}',
          ],
        }),
      ].join("---\n"),
      "keys.yaml": KEYS.map((name) => mcpKeyYaml(name, name)).join("---\n"),
    },
    env: { SVC_CA_FILE: path.join(dir, "ca.pem") },
  });
});

beforeEach(() => {
  upstream.requests.length = 0;
  upstream.accepts = () => true;
  tokens.calls.length = 0;
  tokens.reply = tokenReply("first-access-token");
});

afterAll(async () => {
  await stack?.stop();
  await upstream.close();
  await tokens?.close();
  rmSync(dir, { recursive: true, force: true });
});

/** Calls a tool with the key of the same name. */
async function call(
  provider: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly headers: Headers; readonly body: string }> {
  const response = await fetch(`${stack.externalUrl}/ext/mcp/${provider}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${rawKey(provider)}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...headers,
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "run", arguments: {} },
    }),
  });
  return { status: response.status, headers: response.headers, body: await response.text() };
}

const sent = (): http.IncomingMessage | undefined => upstream.requests.at(-1);

/** Everything that the client got. */
const received = ({ headers, body }: { readonly headers: Headers; readonly body: string }) =>
  `${JSON.stringify([...headers])}${body}`;

test("a token is obtained, kept, and replaced when the server refuses it", async () => {
  expect(await call("renewed")).toMatchObject({ status: 200 });
  await call("renewed");
  expect(sent()?.headers.authorization).toBe("Bearer first-access-token");
  expect(tokens.calls).toHaveLength(1);
  expect(Object.fromEntries(tokens.calls[0]?.form ?? [])).toEqual({
    grant_type: "client_credentials",
    scope: "read",
    resource: upstream.url,
  });

  // The token expires before its time.
  upstream.accepts = ({ authorization }) => authorization === "Bearer second-access-token";
  tokens.reply = tokenReply("second-access-token");
  const refused = await call("renewed");
  expect(refused.status).toBe(502);
  expect(refused.body).toContain("upstream_unauthorized");
  expect(refused.headers.get("www-authenticate")).toBeNull();
  expect(received(refused)).not.toContain("access-token");
  expect(await call("renewed")).toMatchObject({ status: 200 });
  expect(tokens.calls).toHaveLength(2);

  // A server that always refuses causes no further token requests.
  upstream.accepts = () => false;
  for (let times = 0; times < 5; times++) expect((await call("renewed")).status).toBe(502);
  expect(tokens.calls).toHaveLength(2);
  const metrics = await stack.metrics();
  expect(
    metrics.sum("svc_mcp_token_requests_total", { provider: "renewed", outcome: "issued" }),
  ).toBe(2);
  for (const hidden of ["access-token", "the-client-secret"])
    expect(stack.logs).not.toContain(hidden);
});

test.each([
  ["oauth", "authorization", /^Bearer [a-z]+-access-token$/],
  ["usual", "authorization", new RegExp(`^Bearer ${STATIC_TOKEN}$`)],
  ["named", "x-tracker-key", new RegExp(`^Token token=${STATIC_TOKEN}$`)],
])("%s: only the gateway's credential, in %s, reaches the server", async (name, header, value) => {
  const others = { "x-api-key": rawKey(name), "x-tracker-key": "the-clients-own" };
  expect(await call(name, others)).toMatchObject({ status: 200 });
  const headers = sent()?.headers ?? {};
  expect(headers[header]).toMatch(value);
  expect(JSON.stringify(sent()?.rawHeaders)).not.toContain(rawKey(name));
  expect(JSON.stringify(sent()?.rawHeaders)).not.toContain("x-svc-");
  if (header !== "authorization") expect(headers.authorization).toBeUndefined();
});

test.each(["oauth", "usual", "named"])(
  "%s: the credential does not reach the client, also if the server returns it in a header",
  async (name) => {
    const answer = await call(name);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-kept")).toBe("yes");
    expect(answer.headers.get("x-echo")).toBeNull();
    expect(answer.headers.get("x-echo-value")).toBeNull();
    expect(received(answer)).not.toMatch(/access-token|static-token/);
  },
);
