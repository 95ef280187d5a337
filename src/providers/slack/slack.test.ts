import { FakeClock } from "../../platform/testing.ts";
import { describe, expect, test } from "vitest";
import { ConfigError } from "../contract.ts";
import { context, FakeServer, request } from "../testing.ts";
import type { KeptState } from "../kept-state.ts";
import { rotated } from "./contract-sample.ts";
import { ABOUT_NOTHING, IN_CHANNEL, WIDE } from "./methods.ts";
import { plugin } from "./plugin.ts";
import { ARGUMENTS } from "./reach.ts";
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
  return (
    `${action} ` +
    resources.map((each) => (each.kind === "scoped" ? each.value : each.kind)).join("+") +
    (authenticated ? "" : " (no token)")
  );
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
  ["chat.delete", "chat:delete", ["chat:write"]],
  ["chat.deleteScheduledMessage", "chat:delete", ["chat:write"]],
  ["chat.update", "chat:update", ["chat:write"]],
  ["chat.postMessage", "chat:write", undefined],
])("%s is %s, which %j covers", (method, action, broader) => {
  const { resolution } = resolveSlack(request(`GET https://slack.com/api/${method}?channel=C1`));
  expect(resolution).toMatchObject({ kind: "resolved", actions: [{ action }] });
  expect(resolution.kind === "resolved" && resolution.actions[0]?.broader).toEqual(broader);
});

test("each method on a conversation has its arguments reviewed", () => {
  expect(Object.keys(ARGUMENTS).sort()).toEqual(Object.values(IN_CHANNEL).flat().toSorted());
});

const CALL = "POST https://slack.com/api/";

test.each<[string, object, string]>([
  ["reactions.get", { channel: "C1", timestamp: "1.2" }, "C1"],
  ["reactions.get", { channel: "C1", file: "F9" }, "unscopable"],
  ["reactions.add", { channel: "C1", name: "x", file_comment: "Fc9" }, "unscopable"],
  ["pins.add", { channel: "C1", file: "F9" }, "unscopable"],
  ["chat.update", { channel: "C1", ts: "1.2", text: "x" }, "C1"],
  ["chat.update", { channel: "C1", ts: "1.2", file_ids: ["F9"] }, "unscopable"],
  ["chat.unfurl", { channel: "C1", ts: "1.2", unfurls: {} }, "C1"],
  ["chat.unfurl", { channel: "C1", unfurl_id: "9", source: "composer" }, "unscopable"],
  ["bookmarks.add", { channel_id: "C1", title: "x", type: "link", entity_id: "F9" }, "unscopable"],
  ["conversations.history", { channel: "C1", channels: "C9" }, "unscopable"],
  ["conversations.history", { channel: "C1", team_id: "T9" }, "unscopable"],
  ["chat.postMessage", { channel: "C1", thread_ts: "1.2", text: "x" }, "C1"],
])("%s %j is about %s", (method, body, expected) => {
  expect(told(CALL + method, JSON_TYPE, JSON.stringify(body)).split(" ")[1]).toBe(expected);
});

describe("what a message shows of another conversation", () => {
  const message = (body: object): string | undefined =>
    told(POST, JSON_TYPE, JSON.stringify({ channel: "C1", ...body })).split(" ")[1];

  test.each([
    ["see https://team.slack.com/archives/C9/p1700000000000000", "C1+C9"],
    ["<https://team.slack.com/archives/C9/p1700000000000000|here>.", "C1+C9"],
    ["https://team.enterprise.slack.com/archives/C9", "C1+C9"],
    ["https://team.slack.com/archives/C9/p17?thread_ts=1.2&cid=C8", "C1+C9+C8"],
    ["team.slack.com/archives/C9/p17", "C1+C9"],
    ["https://team.slack.com/archives/C1/p17, and C9", "C1+C1"],
    ["https://team.slack.com/%61rchives/C9/p17", "C1+unscopable"],
    ["https://team.slack.com:443/archives/C9/p17", "C1+unscopable"],
    ["https://team.slack.com//archives/C9/p17", "C1+unscopable"],
    ["https://team.slack.com/x/../archives/C9/p17", "C1+unscopable"],
    ["https://team.slack.com\\archives\\C9\\p17", "C1+unscopable"],
    ["https://team。slack。com/archives/C9/p17", "C1+C9"],
    ["https://team.ｓlack.com/archives/C9/p17", "C1+C9"],
    ["https://team.sl\u00adack.com/archives/C9/p17", "C1+C9"],
    ["https://team.sl\u200back.com/archives/C9/p17", "C1+C9"],
    ["https://TEAM.SLACK.COM/archives/C9/p17", "C1+C9"],
    ["https://team.slack.com/files/U1/F9/x.txt", "C1+unscopable"],
    ["https://files.slack.com/files-pri/T1-F9/x.txt", "C1+unscopable"],
    ["https://slack-files.com/T1-F9-abc", "C1+unscopable"],
    ["https://team.slack.com/docs/T1/F9", "C1+unscopable"],
    ["https://app.slack.com/client/T1/C9", "C1+unscopable"],
    ["a/https://t.slack.com/archives/C1/p1,https://t.slack.com/archives/C9/p1", "C1+unscopable"],
    ["we use slack.com.", "C1"],
    ["we use slack.com?!", "C1"],
    ["see https://team.slack.com/archives/C9...", "C1+C9"],
    ["https://t.slack.com/archives/C1?x=t.slack.com/archives/C9", "C1+unscopable"],
    ["https://t.slack.com/archives/C1#https://t.slack.com/archives/C9", "C1+unscopable"],
    ["slack.com,slack.com", "C1+unscopable"],
    ["https://slack.com/archives/C9", "C1+unscopable"],
    ["https://t.slack-gov.com/archives/C9", "C1+C9"],
    ["https://t.slack.com.evil.example/archives/C9", "C1+unscopable"],
    ["https://evil.example/?u=https://t.slack.com/archives/C9", "C1+C9"],
    ["https://example.com/archives/C9/p17", "C1"],
  ])("%j is about %s", (text, expected) => {
    expect(message({ text })).toBe(expected);
    expect(message({ markdown_text: text })).toBe(expected);
    const blocks = [{ type: "section", text: { type: "mrkdwn", text } }];
    expect(message({ blocks })).toBe(expected);
    expect(message({ blocks: JSON.stringify(blocks) })).toBe(expected);
    expect(message({ attachments: [{ from_url: text }] })).toBe(expected);
  });

  test.each([
    { blocks: [{ type: "image", slack_file: { id: "F9" }, alt_text: "x" }] },
    { blocks: [{ type: "file", external_id: "x", source: "remote" }] },
    { blocks: [{ type: "call", call_id: "R9" }] },
    { blocks: '[{"type":"image","slack_file":{"id":"F9"}}]' },
    { blocks: '[{"type":"image","sl\\u0061ck_file":{"id":"F9"}}]' },
    { blocks: "[{" },
    { attachments: '[{"a":1,"a":2}]' },
  ])("%j shows what cannot be told", (body) => {
    expect(message(body)).toContain("unscopable");
  });

  test("a long text costs time in proportion, and many links are too many", () => {
    const long = `${"a".repeat(400_000)} ${"slack".repeat(80_000)} x.slack.com/archives/C9`;
    expect(message({ text: long })).toBe("C1+C9");
    const links = (count: number): string =>
      Array.from({ length: count }, (_, n) => `t.slack.com/archives/C${n}`).join(" ");
    expect(message({ text: links(50) })?.split("+")).toHaveLength(51);
    expect(message({ text: links(51) })).toBe("C1+unscopable");
  });

  test("an address that a preview is for is a link as well", () => {
    const unfurl = (unfurls: object): string | undefined =>
      told(
        `${CALL}chat.unfurl`,
        JSON_TYPE,
        JSON.stringify({ channel: "C1", ts: "1.2", unfurls }),
      ).split(" ")[1];
    expect(unfurl({ "https://t.slack.com/archives/C9/p1": { text: "x" } })).toBe("C1+C9");
    expect(unfurl({ "https://t.slack.com/files/U1/F9": {} })).toBe("C1+unscopable");
    expect(unfurl({ "https://example.com/": { text: "x" } })).toBe("C1");
  });

  test("no blocks are none", () => {
    expect(message({ text: "x", blocks: "" })).toBe("C1");
    expect(message({ text: "x", blocks: [], attachments: null })).toBe("C1");
  });

  test("in a form, escapes of JSON hide nothing", () => {
    const blocks = '[{"text":"https:\\/\\/team.slack.com\\/archives\\/C9\\/p17"}]';
    const form = new URLSearchParams({ channel: "C1", blocks }).toString();
    expect(told(POST, FORM, form)).toBe("chat:write C1+C9");
  });
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

describe("files.slack.com", () => {
  const at = "https://files.slack.com";

  test.each([
    [`GET ${at}/files-pri/T1-F1/a.txt`, "files:read unscopable"],
    [`HEAD ${at}/files-pri/T1-F1/a.txt`, "files:read unscopable"],
    [`GET ${at}/files-tmb/T1-F1/a_64.png`, "files:read unscopable"],
    [`POST ${at}/upload/v1/Ab_-9`, "files:write unscopable (no token)"],
  ])("%s is %s", (line, expected) => {
    expect(told(line)).toBe(expected);
  });

  test.each([
    `GET ${at}/files-pri`,
    `GET ${at}/files-pri/`,
    `GET ${at}/files-pri/T1-F1/`,
    `GET ${at}/files-pri/T1-F1%2Fa.txt/b`,
    `GET ${at}/FILES-PRI/T1-F1/a.txt`,
    `GET ${at}/x/files-pri/T1-F1/a.txt`,
    `DELETE ${at}/files-pri/T1-F1/a.txt`,
    `POST ${at}/files-pri/T1-F1/a.txt`,
    `PUT ${at}/files-pri/T1-F1/a.txt`,
    `GET ${at}/upload/v1/Ab`,
    `PUT ${at}/upload/v1/Ab`,
    `POST ${at}/upload/v1/Ab/c`,
    `POST ${at}/x/upload/v1/Ab`,
    `POST ${at}/upload/v1/A%62`,
    `POST ${at}/upload/v1`,
    `POST ${at}/other/x`,
    `GET ${at}/api/auth.test`,
    "GET https://slack.com/files-pri/T1-F1/a.txt",
    "POST https://slack.com/upload/v1/Ab",
    "GET https://hooks.slack.com/api/auth.test",
  ])("does not serve %s", (line) => {
    expect(told(line)).toBe("unresolved");
  });

  test("gets no token for an upload, and one for a download", async () => {
    const instance = plugin.create(context({ authType: "api-key", secrets: { token: "xoxb-1" } }));
    const headers = async (line: string): Promise<unknown> =>
      (await instance.injectCredentials(request(line))).set;
    expect(await headers(`POST ${at}/upload/v1/Ab`)).toEqual([]);
    expect(await headers(`GET ${at}/other`)).toEqual([]);
    expect(await headers(`GET ${at}/files-pri/T1-F1/a.txt`)).toEqual([
      ["authorization", "Bearer xoxb-1"],
    ]);
  });
});

test("another type of credential is refused when the plugin is created", () => {
  const secrets = { token: "xoxb-1", clientId: "1", clientSecret: "2", refreshToken: "3" };
  expect(() => plugin.create(context({ authType: "basic", secrets }))).toThrow(ConfigError);
});

test("an instance that was stopped asks for no more tokens", async () => {
  const { clock, server, instance } = rotating();
  await instance.start();
  expect(server.calls).toHaveLength(1);
  await instance.stop();
  await clock.advanceAndSettle(24 * 3_600_000);
  expect(server.calls).toHaveLength(1);
});

test("the signature of an upload is taken out of a path", () => {
  expect(redactPath("/upload/v1/CwABAAAAXAoAA")).toBe("/upload/v1/[redacted]");
  expect(redactPath("/api/chat.postMessage")).toBe("/api/chat.postMessage");
});

interface Rotating {
  readonly clock?: FakeClock;
  readonly server?: FakeServer;
  readonly state?: KeptState;
  readonly refreshToken?: string;
}

function slackServer(): FakeServer {
  let uses = 0;
  return new FakeServer(() => rotated(++uses));
}

function rotating({
  clock = new FakeClock(),
  server = slackServer(),
  state,
  refreshToken = "xoxe-1-refresh-0",
}: Rotating = {}) {
  const world = context({
    authType: "oauth2",
    secrets: { clientId: "1.2", clientSecret: "s3cr3t", refreshToken },
    clock,
    state,
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

/** A state in memory, which outlives the instances. */
class MemoryState implements KeptState {
  text: string | undefined;
  failing = false;
  #last: Promise<unknown> = Promise.resolve();

  exclusively<T>(_signal: AbortSignal, action: () => Promise<T>): Promise<T> {
    const done = this.#last.then(action);
    this.#last = done.catch(() => undefined);
    return done;
  }

  read(): string | undefined {
    return this.text;
  }

  write(text: string): void {
    if (this.failing) throw new Error("ENOSPC");
    this.text = text;
  }
}

const HOURS_MS = 3_600_000;
const sentTokens = ({ calls }: FakeServer): (string | null)[] =>
  calls.map(({ body }) => new URLSearchParams(body).get("refresh_token"));

describe("what is kept beyond the process", () => {
  test("a restarted sidecar uses the kept access token, and later the kept refresh token", async () => {
    const shared = { clock: new FakeClock(), server: slackServer(), state: new MemoryState() };
    const first = rotating(shared);
    await first.instance.start();
    await first.instance.stop();
    await shared.clock.advanceAndSettle(6 * HOURS_MS);
    const second = rotating(shared);
    await second.instance.start();
    expect(await second.authorization()).toBe("Bearer xoxe.xoxb-1-access-1");
    expect(sentTokens(shared.server)).toEqual(["xoxe-1-refresh-0"]);
    await shared.clock.advanceAndSettle(6 * HOURS_MS);
    expect(await second.authorization()).toBe("Bearer xoxe.xoxb-1-access-2");
    await second.instance.stop();
    const third = rotating(shared);
    await shared.clock.advanceAndSettle(24 * HOURS_MS);
    await third.instance.start();
    expect(await third.authorization()).toBe("Bearer xoxe.xoxb-1-access-3");
    expect(sentTokens(shared.server)).toEqual([
      "xoxe-1-refresh-0",
      "xoxe-1-refresh-1",
      "xoxe-1-refresh-2",
    ]);
    await third.instance.stop();
  });

  test("sidecars side by side share each exchange", async () => {
    const shared = { clock: new FakeClock(), server: slackServer(), state: new MemoryState() };
    const both = [rotating(shared), rotating(shared)];
    await Promise.all(both.map(({ instance }) => instance.start()));
    await shared.clock.advanceAndSettle(11 * HOURS_MS);
    for (const { authorization } of both)
      expect(await authorization()).toBe("Bearer xoxe.xoxb-1-access-2");
    expect(sentTokens(shared.server)).toEqual(["xoxe-1-refresh-0", "xoxe-1-refresh-1"]);
    await Promise.all(both.map(({ instance }) => instance.stop()));
  });

  test("a new Secret wins", async () => {
    const shared = { clock: new FakeClock(), server: slackServer(), state: new MemoryState() };
    await rotating(shared).instance.start();
    const renewed = rotating({ ...shared, refreshToken: "xoxe-1-new" });
    await renewed.instance.start();
    expect(sentTokens(shared.server)).toEqual(["xoxe-1-refresh-0", "xoxe-1-new"]);
    expect(shared.state.text).not.toContain("xoxe-1-new");
  });

  test.each(["", "{", "{}", '{"version":2}', "[]"])(
    "%j is not used, which is logged",
    async (text) => {
      const state = new MemoryState();
      state.text = text;
      const { server, world, instance } = rotating({ state });
      await instance.start();
      expect(sentTokens(server)).toEqual(["xoxe-1-refresh-0"]);
      expect(world.lines.join("")).toContain("the kept tokens cannot be read");
      expect(state.text).toContain("xoxe-1-refresh-1");
      await instance.stop();
    },
  );

  test("nothing, if it cannot be written: the token serves, and the log says so", async () => {
    const state = new MemoryState();
    state.failing = true;
    const { world, instance, authorization } = rotating({ state });
    await instance.start();
    expect(await authorization()).toBe("Bearer xoxe.xoxb-1-access-1");
    expect(world.lines.join("")).toContain("could not be kept");
    expect(world.lines.join("")).not.toMatch(/xoxe-1-refresh|xoxb-1-access/);
    await instance.stop();
  });
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

test("the refresh token waits as long as Slack asks for", async () => {
  const { clock, server, instance, authorization } = rotating();
  const { respond } = server;
  server.respond = () => new Response("", { status: 429, headers: { "retry-after": "30" } });
  await instance.start();
  server.respond = respond;
  await clock.advanceAndSettle(29_000);
  expect(server.calls).toHaveLength(1);
  await clock.advanceAndSettle(10_000);
  expect(await authorization()).toBe("Bearer xoxe.xoxb-1-access-1");
  await instance.stop();
});

const ROTATED = {
  ok: true,
  access_token: "xoxe.xoxb-1",
  refresh_token: "xoxe-1-refresh-1",
  expires_in: 43_200,
};

test.each<[string, unknown]>([
  ["a token with a line break", { ...ROTATED, access_token: "xoxb-1\r\nx-other: 1" }],
  ["an empty token", { ...ROTATED, access_token: "" }],
  ["a token that is a number", { ...ROTATED, access_token: 1 }],
  ["a refresh token with a space", { ...ROTATED, refresh_token: "xoxe 1" }],
  ["no refresh token", { ...ROTATED, refresh_token: undefined }],
  ["a lifetime that is text", { ...ROTATED, expires_in: "43200" }],
  ["a list", [ROTATED]],
  ["more than 256 KiB", { ...ROTATED, more: "x".repeat(256 * 1024) }],
])(
  "an answer with %s gives no token, and the refresh token is tried again",
  async (_name, told) => {
    const { clock, server, instance, authorization } = rotating();
    const { respond } = server;
    server.respond = () => Response.json(told);
    await instance.start();
    await expect(authorization()).rejects.toMatchObject({ status: 503 });
    server.respond = respond;
    await clock.advanceAndSettle(2_000);
    expect(await authorization()).toBe("Bearer xoxe.xoxb-1-access-1");
    const sent = server.calls.map(({ body }) => new URLSearchParams(body).get("refresh_token"));
    expect(new Set(sent)).toEqual(new Set(["xoxe-1-refresh-0"]));
    await instance.stop();
  },
);

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

describe("arguments in a body", () => {
  const body = (
    type: string | undefined,
    text: string,
    more: Record<string, string> = {},
  ): string =>
    told(POST, { ...(type === undefined ? {} : { "content-type": type }), ...more }, text);

  test.each([
    ["application/x-www-form-urlencoded", "channel=C1&text=x"],
    ["application/x-www-form-urlencoded; charset=utf-8", "channel=C1&text=x"],
    ['Application/X-WWW-Form-URLEncoded ; charset="UTF-8" ', "channel=C1&text=x"],
    ["application/json", '{"channel":"C1","text":"x"}'],
    ['application/json;charset="utf-8"', '{"channel":"C1","text":"x"}'],
    ["application/json ; charset=utf-8", '{"channel":"C1","text":"x"}'],
    ["application/x-www-form-urlencoded;charset=utf-8", "channel=C1&text=x"],
  ])("declared as %s are read", (type, text) => {
    expect(body(type, text)).toBe("chat:write C1");
  });

  test.each<[type: string | undefined, text: string]>([
    [undefined, "channel=C1"],
    ["x-application/x-www-form-urlencoded", "channel=C1"],
    ["application/x-www-form-urlencoded; charset=utf-16", "channel=C1"],
    ["application/x-www-form-urlencoded; charset=utf-8; x", "channel=C1"],
    ["x-application/json", '{"channel":"C1"}'],
    ["application/jsonx", '{"channel":"C1"}'],
    ["application/json x", '{"channel":"C1"}'],
    ["application/json; charset=latin1", '{"channel":"C1"}'],
    ["application/json", "[]"],
    ["application/json", '{"channel":"C1","channel":"C2"}'],
    ["application/x-www-form-urlencoded", "channel=C1;channel=C2"],
    ["application/x-www-form-urlencoded", "channel=C1&text=\u00e9"],
    ["application/x-www-form-urlencoded", "channel=C1&channel=C2"],
    ["application/x-www-form-urlencoded", "channel=C1&channel%5B%5D=C2"],
    ["application/x-www-form-urlencoded", "channel=C1&channel.id=C2"],
  ])("declared as %s are refused: %s", (type, text) => {
    expect(body(type, text)).toBe("unresolved");
  });

  test("that are compressed, unread or in a GET are refused", () => {
    const type = FORM["content-type"];
    expect(body(type, "channel=C1", { "content-encoding": "gzip" })).toBe("unresolved");
    expect(told(POST, { "content-length": "1" })).toBe("unresolved");
    expect(told(POST, { "transfer-encoding": "chunked" })).toBe("unresolved");
    expect(told(POST.replace("POST", "GET"), FORM, "channel=C1")).toBe("unresolved");
    expect(told(`${POST}?channel=C1`, { "content-length": "0" })).toBe("chat:write C1");
    expect(told(`${POST}?channel=C1`, {}, "")).toBe("chat:write C1");
  });

  test("that are also in the query are refused", () => {
    expect(told(`${POST}?channel=C1`, FORM, "channel=C1")).toBe("unresolved");
  });
});
