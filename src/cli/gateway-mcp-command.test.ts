/** `svc gateway mcp`. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { newAccessKey } from "../access/access-keys.ts";
import { parseMcpRoute } from "../mcp/gateway/route.ts";
import { MCP_CLIENT_SETUPS } from "./mcp-clients.ts";
import { CliWorld } from "./testing.ts";

const [OWN, LAPTOP] = [1, 2].map((byte) => newAccessKey(new Uint8Array(32).fill(byte)));
const BASE = "https://gateway.example.com/svc";

let dir: string;
let world: CliWorld;

beforeEach(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
  world = new CliWorld();
  world.env = { XDG_CONFIG_HOME: dir };
  world.fetch = () => Promise.resolve(Response.json({ object: "list", data: [] }));
});

afterEach(() => rmSync(dir, { recursive: true }));

async function logIn(key: string | undefined, ...flags: string[]): Promise<string> {
  world.stdin = `${key}\n`;
  const { code, stderr } = await world.run("login", BASE, "--access-key", "-", ...flags);
  expect(code).toBe(0);
  return stderr;
}

const mcp = (...flags: string[]) => world.run("gateway", "mcp", "tracker", ...flags);

const plainForm = (key: string | undefined, base = BASE): unknown => ({
  mcpServers: {
    tracker: {
      transport: "sse",
      url: `${base}/ext/mcp/tracker/sse`,
      headers: { Authorization: `Bearer ${key}` },
    },
  },
});

describe("the key", () => {
  test("is the one of its name, beside the login", async () => {
    await logIn(OWN);
    const said = await logIn(LAPTOP, "--name", "laptop");
    expect(said).toContain("svc gateway mcp <provider> --key laptop");
    expect(said).not.toContain(LAPTOP);
    const named = await mcp("--key", "laptop");
    expect([named.code, JSON.parse(named.stdout)]).toEqual([0, plainForm(LAPTOP)]);
    expect(named.stderr).not.toContain(LAPTOP);
    expect(JSON.parse((await mcp()).stdout)).toEqual(plainForm(OWN));
    expect(statSync(path.join(dir, "svc/config.yaml")).mode & 0o777).toBe(0o600);
  });

  test("survives another login, and is deleted by its name or with all", async () => {
    await logIn(LAPTOP, "--name", "laptop");
    await logIn(OWN);
    expect((await mcp("--key", "laptop")).stdout).toContain(LAPTOP);
    expect((await world.run("logout", "--name", "laptop")).stderr).toBe(
      "Deleted the AccessKey laptop.\n",
    );
    expect((await world.run("logout", "--name", "laptop")).stderr).toContain("was stored");
    expect((await mcp("--key", "laptop")).stdout).not.toContain(LAPTOP);
    expect((await mcp()).stdout).toContain(OWN);
    await logIn(LAPTOP, "--name", "laptop");
    await world.run("logout");
    expect(await mcp("--key", "laptop")).toMatchObject({ code: 1, stdout: "" });
  });

  test("is a placeholder if its name is not known, and the way to store it is shown", async () => {
    await logIn(OWN);
    const { code, stdout, stderr } = await mcp("--key", "other");
    expect([code, JSON.parse(stdout)]).toEqual([0, plainForm("<ACCESS_KEY>")]);
    expect(stderr).toContain("svc login <base_url> --name other");
  });

  test("is not given to another gateway", async () => {
    await logIn(OWN);
    await logIn(LAPTOP, "--name", "laptop");
    const other = "https://other.example.com";
    for (const flags of [[], ["--key", "laptop"]]) {
      const { stdout } = await mcp("--url", `${other}/ext`, ...flags);
      expect(JSON.parse(stdout)).toEqual(plainForm("<ACCESS_KEY>", other));
    }
    expect((await mcp("--url", `${BASE}/`)).stdout).toContain(OWN);
  });

  test("of a broken file can be stored again", async () => {
    await logIn(OWN);
    writeFileSync(path.join(dir, "svc/config.yaml"), "gateway: [");
    expect(await mcp()).toMatchObject({ code: 1, stdout: "" });
    await logIn(LAPTOP, "--name", "laptop");
    expect((await mcp("--key", "laptop")).stdout).toContain(LAPTOP);
  });
});

test.each<[what: string, args: readonly string[], code: number, message: string]>([
  ["no gateway", ["tracker"], 1, "run svc login <base_url> first, or name it with --url"],
  ["a name that is none", ["a/../b", "--url", BASE], 2, "is not the name of a Provider"],
  ["an unknown client", ["tracker", "--client", "x"], 2, "Allowed choices are claude"],
  ["an address that is none", ["tracker", "--url", "x"], 2, "not the address of a gateway"],
])("with %s", async (_what, args, code, message) => {
  const ran = await world.run("gateway", "mcp", ...args);
  expect(ran).toMatchObject({ code, stdout: "" });
  expect(ran.stderr).toContain(message);
});

describe("the form of a client", () => {
  beforeEach(() => logIn(LAPTOP, "--name", "laptop"));

  test.each<[client: string, place: string, key: "shown" | "hidden", expected: object | string]>([
    [
      "claude",
      ".mcp.json",
      "hidden",
      {
        mcpServers: {
          tracker: {
            type: "http",
            url: `${BASE}/ext/mcp/tracker`,
            headers: { Authorization: "Bearer ${SVC_ACCESS_KEY}" },
          },
        },
      },
    ],
    [
      "claude-desktop",
      "claude_desktop_config.json",
      "shown",
      {
        mcpServers: {
          tracker: {
            command: "npx",
            args: [
              "-y",
              "mcp-remote",
              `${BASE}/ext/mcp/tracker`,
              "--transport",
              "http-only",
              "--header",
              "Authorization:${AUTHORIZATION}",
            ],
            env: { AUTHORIZATION: `Bearer ${LAPTOP}` },
          },
        },
      },
    ],
    [
      "cursor",
      ".cursor/mcp.json",
      "hidden",
      {
        mcpServers: {
          tracker: {
            url: `${BASE}/ext/mcp/tracker`,
            headers: { Authorization: "Bearer ${env:SVC_ACCESS_KEY}" },
          },
        },
      },
    ],
    [
      "vscode",
      ".vscode/mcp.json",
      "hidden",
      {
        inputs: [
          {
            type: "promptString",
            id: "tracker-key",
            description: "AccessKey of the MCP server tracker",
            password: true,
          },
        ],
        servers: {
          tracker: {
            type: "http",
            url: `${BASE}/ext/mcp/tracker`,
            headers: { Authorization: "Bearer ${input:tracker-key}" },
          },
        },
      },
    ],
    [
      "codex",
      "config.toml",
      "hidden",
      `[mcp_servers.tracker]\nurl = "${BASE}/ext/mcp/tracker"\n` +
        'bearer_token_env_var = "SVC_ACCESS_KEY"\n',
    ],
  ])("%s, for %s, with the key %s", async (client, place, key, expected) => {
    const { stdout, stderr } = await mcp("--key", "laptop", "--client", client);
    expect(typeof expected === "string" ? stdout : JSON.parse(stdout)).toEqual(expected);
    expect(stderr).toContain(place);
    expect(stdout.includes(String(LAPTOP))).toBe(key === "shown");
    expect(stderr).not.toContain(LAPTOP);
  });

  test("every client has a row above, and its URL is one of the gateway", async () => {
    expect(MCP_CLIENT_SETUPS.map(({ client }) => client)).toEqual([
      "claude",
      "claude-desktop",
      "cursor",
      "vscode",
      "codex",
    ]);
    for (const { client } of MCP_CLIENT_SETUPS) {
      const { stdout } = await mcp("--key", "laptop", "--client", client);
      const [url = ""] = /https:[^"]+/.exec(stdout) ?? [];
      expect(parseMcpRoute(new URL(url).pathname.replace("/svc", ""))).toMatchObject({
        server: "tracker",
        endpoint: "streamable",
      });
    }
  });

  test("an unencrypted gateway needs the consent of mcp-remote", async () => {
    const { stdout } = await mcp("--url", "http://127.0.0.1:8080", "--client", "claude-desktop");
    expect(stdout).toContain('"--allow-http"');
  });
});
