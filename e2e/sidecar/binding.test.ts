/**
 * The binding proxy through the real Envoy: allowed requests arrive with the real credential,
 * others are not forwarded.
 */
import { readdirSync, readFileSync } from "node:fs";
import https from "node:https";
import path from "node:path";
import tls from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ROOT } from "../support/build.ts";
import { Outside } from "../support/services.ts";
import { Sidecar } from "../support/sidecar.ts";
import { until } from "../support/wait.ts";

const TOKEN = "ghp_the-real-token-0123456789";
const BOT_TOKEN = "bot-token-0123456789";

const GITHUB = {
  name: "github",
  type: "github",
  auth: { type: "token", env: { token: "SVC_SECRET_GITHUB_TOKEN" } },
  config: {},
  policy: {
    allow: ["pulls:*", "contents:read", "issues:read"],
    deny: ["pulls:write"],
    httpRules: [],
  },
  scope: { repositories: ["octo/*"] },
  audit: { enforcement: "enforce", logRequests: false },
};

/** A second one, to check that the first is not changed. */
const CHAT = {
  name: "chat",
  type: "discord",
  auth: { type: "token", env: { token: "SVC_SECRET_CHAT_TOKEN" } },
  config: {},
  policy: { allow: ["messages:read"], deny: [], httpRules: [] },
  scope: {},
  audit: { enforcement: "enforce", logRequests: false },
};

let outside: Outside;
let sidecar: Sidecar;

beforeAll(async () => {
  outside = await Outside.start([
    "api.github.com",
    "github.com",
    "uploads.github.com",
    "discord.com",
    "evil.com",
  ]);
  sidecar = await Sidecar.start({
    outside,
    bindings: [GITHUB, CHAT],
    secrets: { SVC_SECRET_GITHUB_TOKEN: TOKEN, SVC_SECRET_CHAT_TOKEN: BOT_TOKEN },
  });
});

afterAll(async () => {
  await sidecar?.stop();
  await outside?.close();
});

beforeEach(() => {
  outside.requests.length = 0;
});

interface Ask {
  readonly host?: string;
  readonly serverName?: string;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

/** With a client that trusts the bundle, and resolves the host to 127.0.0.1. */
function ask({
  host = "api.github.com",
  serverName = host,
  method = "GET",
  path = "/",
  headers = {},
  body,
}: Ask): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = https.request(
      {
        host: "127.0.0.1",
        port: sidecar.httpsPort,
        servername: serverName,
        ca: sidecar.bundle,
        method,
        path,
        agent: false,
        headers: { host, ...headers },
      },
      (response) => {
        let text = "";
        response.on("data", (part: Buffer) => (text += part.toString()));
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
        );
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

describe("an allowed call", () => {
  test("arrives at the real endpoint with the real credential, as it was sent otherwise", async () => {
    const reply = await ask({
      path: "/repos/octo/hello/pulls?state=open",
      headers: {
        authorization: "Bearer agents-own",
        accept: "application/vnd.github+json",
        cookie: "a=b",
      },
    });
    expect(reply).toMatchObject({ status: 200, text: '{"ok":true}' });
    expect(outside.requests).toHaveLength(1);
    expect(outside.requests[0]).toMatchObject({
      host: "api.github.com",
      method: "GET",
      url: "/repos/octo/hello/pulls?state=open",
    });
    expect(outside.requests[0]?.headers.authorization).toContain(TOKEN);
    expect(outside.requests[0]?.headers.accept).toBe("application/vnd.github+json");
    expect(JSON.stringify(outside.requests[0]?.rawHeaders)).not.toMatch(
      /agents-own|a=b|x-svc|x-envoy|x-forwarded/i,
    );
  });

  test("is on record before it leaves and when it is over, without its query", async () => {
    await ask({ path: "/repos/octo/hello/pulls?secret=s3cr3t" });
    const calls = (): ReturnType<Sidecar["audit"]> =>
      sidecar.audit().filter(({ type }) => type === "SERVICE_CALL");
    const id = calls().findLast(({ fields }) => fields["phase"] === "request")?.fields["call"];
    const records = await until(
      () => {
        const found = calls().filter(({ fields }) => fields["call"] === id);
        return found.length === 2 ? found : undefined;
      },
      { what: "both records" },
    );
    expect(records[0]?.fields).toMatchObject({
      phase: "request",
      workload: "default/tester",
      binding: "github",
      action: "pulls:read",
      resource: "octo/hello",
      allowed: true,
      mode: "enforce",
      method: "GET",
      path: "/repos/octo/hello/pulls",
    });
    expect(records[1]?.fields).toMatchObject({
      phase: "response",
      call: records[0]?.fields["call"],
      status: 200,
      bytes_received: 11,
    });
    expect(JSON.stringify(sidecar.audit())).not.toMatch(/s3cr3t|ghp_/);
  });
});

describe("a denied call", () => {
  test.each<[string, Ask, object]>([
    [
      "an action that is denied",
      { method: "POST", path: "/repos/octo/hello/pulls" },
      {
        code: "action_denied",
        binding: "github",
        action: "pulls:write",
        rule: "policy.deny: pulls:write",
      },
    ],
    [
      "an action that is not on the list",
      { method: "DELETE", path: "/repos/octo/hello/issues/comments/1" },
      { code: "action_denied", rule: "policy.allow: not on the list" },
    ],
    [
      "a repository out of scope",
      { path: "/repos/other/hello/pulls" },
      { code: "out_of_scope", resource: "other/hello" },
    ],
    [
      "an unknown route",
      { path: "/repos/octo/hello/no-such-thing" },
      { code: "unresolved_action" },
    ],
    [
      "a host that is not bound",
      { host: "github.com.evil.com", serverName: "api.github.com" },
      { code: "malformed_request" },
    ],
  ])("%s gets a reason, and nothing leaves", async (_name, sent, expected) => {
    const reply = await ask(sent);
    expect(JSON.parse(reply.text)).toMatchObject({ source: "svc", ...expected });
    expect([403, 421]).toContain(reply.status);
    expect(outside.requests).toEqual([]);
    expect(reply.text).not.toContain(TOKEN);
  });
});

test("a handshake for a name that is not bound fails", async () => {
  await expect(ask({ host: "evil.com" })).rejects.toThrow();
});

describe("a request that is judged by its body", () => {
  const query = (text: string): Ask => ({
    method: "POST",
    path: "/graphql",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ query: text }),
  });

  test("is allowed for what it asks, and arrives byte by byte", async () => {
    const sent = query(
      '{ repository(owner: "octo", name: "hello") { pullRequests(first: 1) { nodes { title ' +
        "} } } } # h\u00e9llo \u{1F600}",
    );
    expect(await ask(sent)).toMatchObject({ status: 200 });
    expect(outside.requests).toHaveLength(1);
    expect(outside.requests[0]?.body.toString()).toBe(sent.body);
  });

  test.each<[string, Ask]>([
    [
      "another repository",
      query(
        '{ repository(owner: "other", name: "x") { pullRequests(first: 1) { nodes { title } } } }',
      ),
    ],
    [
      "one of two",
      query(
        '{ a: repository(owner: "octo", name: "x") { pullRequests(first: 1) { nodes { ' +
          'title } } } b: repository(owner: "other", name: "x") { pullRequests(first: 1) { ' +
          "nodes { title } } } }",
      ),
    ],
    ["a mutation", query('mutation { addStar(input: {starrableId: "x"}) { clientMutationId } }')],
    ["no query", { method: "POST", path: "/graphql", body: "{" }],
    ["no body", { method: "POST", path: "/graphql" }],
    [
      "bytes that are no text",
      {
        method: "POST",
        path: "/graphql",
        body: Buffer.from(
          '{"query":"{ repository(owner: "octo", name: "\xff\xfe") { id } }"}',
          "latin1",
        ),
      },
    ],
  ])("goes nowhere: %s", async (_name, sent) => {
    expect(await ask(sent)).toMatchObject({ status: 403 });
    expect(outside.requests).toEqual([]);
  });

  test("goes nowhere when its body is larger than can be judged", async () => {
    const sent = query(`{ repository(owner: "octo", name: "${"x".repeat(2_000_000)}") { id } }`);
    expect((await ask(sent)).status).toBe(413);
    expect(outside.requests).toEqual([]);
  });
});

test("many requests at once are all served", async () => {
  const replies = await Promise.all(
    Array.from({ length: 200 }, async (_, i) => ask({ path: `/repos/octo/r${i}/pulls` })),
  );
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]));
  expect(outside.requests).toHaveLength(200);
});

describe("a reload", () => {
  test("is live after one poll; a broken file keeps the last good one and is shown", async () => {
    sidecar.writeSpecs([{ ...GITHUB, policy: { ...GITHUB.policy, deny: ["pulls:*"] } }, CHAT]);
    await until(async () => (await ask({ path: "/repos/octo/hello/pulls" })).status === 403, {
      what: "the new policy",
    });
    sidecar.writeSpecsText("{");
    await until(
      async () => /svc_binding_reload_ok 0/.test((await sidecar.admin("/metrics")).body),
      { what: "the metric" },
    );
    expect((await ask({ path: "/repos/octo/hello/pulls" })).status).toBe(403);
    sidecar.writeSpecs([{ ...GITHUB, audit: { enforcement: "audit", logRequests: false } }, CHAT]);
    await until(
      async () =>
        (await ask({ method: "POST", path: "/repos/octo/hello/pulls", body: "{}" })).status === 200,
      { what: "audit mode" },
    );
    await until(() => sidecar.logs.includes("AUDIT (not blocked):"), {
      what: "the line of the log",
    });
    expect(outside.requests.at(-1)?.headers.authorization).toContain(TOKEN);
    // The other binding still enforces, and each gets its own credential.
    const chat = { host: "discord.com", path: "/api/v10/channels/1/messages" };
    expect((await ask({ ...chat, method: "POST", body: "{}" })).status).toBe(403);
    expect((await ask(chat)).status).toBe(200);
    expect(outside.requests.at(-1)?.headers).toMatchObject({ authorization: `Bot ${BOT_TOKEN}` });
    expect(JSON.stringify(outside.requests.at(-1)?.rawHeaders)).not.toContain(TOKEN);
    sidecar.writeSpecs([GITHUB, { ...CHAT, audit: { enforcement: "audit", logRequests: false } }]);
    await until(async () => (await ask({ ...chat, method: "POST", body: "{}" })).status === 200, {
      what: "the other binding's audit mode",
    });
    expect(
      (await ask({ method: "POST", path: "/repos/octo/hello/pulls", body: "{}" })).status,
    ).toBe(403);
    sidecar.writeSpecs([GITHUB, CHAT]);
    await until(
      async () =>
        (await ask({ method: "POST", path: "/repos/octo/hello/pulls", body: "{}" })).status === 403,
      { what: "enforcement again" },
    );
  });
});

test("the certificate is the sidecar's, for the name that was asked for", async () => {
  const socket = tls.connect({
    host: "127.0.0.1",
    port: sidecar.httpsPort,
    servername: "uploads.github.com",
    ca: sidecar.bundle,
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("secureConnect", () => resolve());
    socket.once("error", reject);
  });
  expect(socket.getPeerCertificate().subjectaltname).toBe("DNS:uploads.github.com");
  socket.destroy();
});

test("a service that echoes the credential in its headers does not hand it to the agent", async () => {
  const before = outside.handler;
  outside.handler = ({ headers }, response) => {
    const authorization = headers.authorization ?? "";
    const [scheme, value = ""] = authorization.split(" ");
    const password = scheme === "Basic" ? Buffer.from(value, "base64").toString() : "none";
    response.writeHead(200, {
      "content-type": "text/plain",
      "x-echo": authorization,
      "x-echo-part": `you sent ${TOKEN}, did you not`,
      "x-echo-password": password,
      "set-cookie": ["a=1", `token=${TOKEN}`],
      "www-authenticate": `Bearer realm="${TOKEN}"`,
      "x-kept": "kept",
    });
    response.end("ok");
  };
  try {
    for (const call of [
      { path: "/repos/octo/hello/pulls" },
      // git: Basic, in which the token is encoded.
      { host: "github.com", path: "/octo/hello.git/info/refs?service=git-upload-pack" },
    ]) {
      const reply = await ask(call);
      expect(outside.requests.at(-1)?.headers.authorization).toMatch(/^(?:Bearer|Basic|token) /i);
      const basic = Buffer.from(`x-access-token:${TOKEN}`).toString("base64");
      for (const secret of [TOKEN, basic])
        expect(JSON.stringify(reply.headers)).not.toContain(secret);
      expect(reply).toMatchObject({ status: 200, text: "ok" });
      expect(reply.headers["x-kept"]).toBe("kept");
      expect(reply.headers["content-type"]).toBe("text/plain");
    }
  } finally {
    outside.handler = before;
  }
});

test("a flood of denied calls is answered, and not written out; what is allowed is", async () => {
  const records = (allowed: boolean): number =>
    sidecar.audit().filter(({ fields }) => fields["allowed"] === allowed).length;
  const leftOut = async (): Promise<number> => {
    const { body } = await sidecar.admin("/metrics");
    return Number(/^svc_audit_refusals_left_out_total\{reason="rate"\} (\d+)$/m.exec(body)?.[1]);
  };
  // When its record is on the disk, all earlier ones are too.
  await ask({ path: "/repos/octo/hello/pulls" });
  const before = { denied: records(false), allowed: records(true), leftOut: await leftOut() };
  const flood = 150;
  for (let i = 0; i < flood; i += 1)
    expect((await ask({ method: "DELETE", path: `/repos/octo/hello?${i}` })).status).toBe(403);
  for (let i = 0; i < 5; i += 1)
    expect((await ask({ path: "/repos/octo/hello/pulls" })).status).toBe(200);
  expect(records(true) - before.allowed).toBe(5);
  const missing = (await leftOut()) - before.leftOut;
  expect(missing).toBeGreaterThan(0);
  await until(() => records(false) - before.denied === flood - missing, {
    what: "the denials that have a record of their own",
  });
});

test("the built sidecar has the plugins that are shipped, and not the example", () => {
  const dist = path.join(ROOT, "dist");
  const code = readdirSync(dist, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".js"))
    .map((name) => readFileSync(path.join(dist, name), "utf8"))
    .join("");
  for (const host of ["api.github.com", "files.slack.com", "discord.com"])
    expect(code).toContain(host);
  expect(code).not.toContain("api.library.example");
});

test("the built sidecar imports none of Node's modules, which would load more, and is ASCII", () => {
  const code = readFileSync(path.join(ROOT, "dist/sidecar.js"), "latin1");
  // `createRequire`, for packages that are CommonJS.
  expect(code.match(/from ?"node:\w+"/g)).toEqual(['from "node:module"']);
  // One other character doubles the memory of the whole text.
  expect(code.search(/[\u0080-\u00ff]/)).toBe(-1);
});
