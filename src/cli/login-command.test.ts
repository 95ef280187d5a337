/** `svc login`, `svc logout` and `svc gateway ...`. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { newAccessKey, wrapAccessKey } from "../access/access-keys.ts";
import { CliWorld } from "./testing.ts";

const KEY = newAccessKey(new Uint8Array(32).fill(7));
const BASE = "https://gateway.example.com";

let dir: string;
let file: string;
let world: CliWorld;
/** Requests that the gateway received. */
let requests: {
  readonly url: string;
  readonly authorization: string | null;
  readonly redirect: string | undefined;
}[];

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
  file = path.join(dir, "svc/config.yaml");
  world = new CliWorld();
  world.env = { XDG_CONFIG_HOME: dir };
  world.stdin = `${KEY}\n`;
  requests = [];
  answers(Response.json({ object: "list", data: [{ id: "a" }, { id: "b" }] }));
});

afterEach(() => rmSync(dir, { recursive: true }));

function answers(response: Response | Error): void {
  world.fetch = async (input, init) => {
    requests.push({
      url: input as string,
      authorization: new Headers(init?.headers).get("authorization"),
      redirect: init?.redirect,
    });
    if (response instanceof Error) throw response;
    return response.clone();
  };
}

describe("login", () => {
  test("asks the gateway, and keeps the key for this user alone", async () => {
    const ran = await world.run("login", BASE, "--access-key", "-");
    expect(ran).toEqual({
      code: 0,
      stdout: "",
      stderr: `Logged in at ${BASE}, with 2 models. Next: eval "$(svc gateway env)"\n`,
    });
    expect(requests).toEqual([
      { url: `${BASE}/ext/v1/models`, authorization: `Bearer ${KEY}`, redirect: "manual" },
    ]);
    expect(parse(readFileSync(file, "utf8"))).toEqual({
      gateway: { baseURL: BASE, accessKey: KEY },
    });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(path.dirname(file)).mode & 0o777).toBe(0o700);
    expect(readdirSync(path.dirname(file))).toEqual(["config.yaml"]);
  });

  test("a file that others could read becomes this user's alone", async () => {
    mkdirSync(path.dirname(file));
    writeFileSync(file, "", { mode: 0o644 });
    await world.run("login", BASE, "--access-key", "-");
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test.each<[string, () => readonly string[]]>([
    ["wrapped", () => ["--access-key", wrapAccessKey(KEY)]],
    ["raw", () => ["--access-key", KEY]],
    ["in a file", () => ["--access-key-file", path.join(dir, "key")]],
    ["typed", () => []],
  ])("the key %s", async (_name, flags) => {
    writeFileSync(path.join(dir, "key"), wrapAccessKey(KEY));
    world.typed = KEY;
    const ran = await world.run("login", BASE, ...flags());
    expect(ran.code).toBe(0);
    expect(ran.stdout + ran.stderr + world.asked.join("")).not.toContain(KEY);
    expect(requests[0]?.authorization).toBe(`Bearer ${KEY}`);
  });

  test.each([
    `${BASE}/`,
    `${BASE}/ext`,
    `${BASE}/ext/`,
    `${BASE}/ext/v1`,
    `${BASE}/ext/v1/`,
    "HTTPS://Gateway.example.com:443",
  ])("%s is the same gateway", async (url) => {
    await world.run("login", url, "--access-key", "-");
    expect(requests[0]?.url).toBe(`${BASE}/ext/v1/models`);
  });

  test("below a path", async () => {
    await world.run("login", `${BASE}/team/svc/`, "--access-key", "-");
    expect(requests[0]?.url).toBe(`${BASE}/team/svc/ext/v1/models`);
  });

  test.each([
    ["http://gateway.example.com", true],
    ["http://127.0.0.1.example.com", true],
    ["http://10.0.0.1:8080", true],
    ["http://127.0.0.1:8080", false],
    ["http://localhost:8080", false],
    ["http://[::1]:8080", false],
    [BASE, false],
  ])("warns where the key goes in clear text: %s %j", async (url, warned) => {
    expect(
      (await world.run("login", url, "--access-key", "-")).stderr.includes("is not encrypted"),
    ).toBe(warned);
  });

  test.each<[string, () => Response | Error, string]>([
    [
      "a key that is refused",
      () => Response.json({ error: { message: "The access key has expired." } }, { status: 401 }),
      "the gateway refused the AccessKey (401): The access key has expired.",
    ],
    [
      "an address that is",
      () => Response.json({ error: { message: "no\u001b[31m" } }, { status: 403 }),
      "(403): no [31m",
    ],
    [
      "another server",
      () => new Response("<html>", { status: 200 }),
      "is not an external gateway of svc (200): is the base URL right?",
    ],
    [
      "another path",
      () => new Response("", { status: 404 }),
      "is not an external gateway of svc (404)",
    ],
    [
      "a redirect",
      () => new Response("", { status: 302, headers: { location: "https://evil.example" } }),
      "redirects to another address, to which the key is not sent",
    ],
    [
      "a failure",
      () => Response.json({ error: {} }, { status: 503 }),
      "the gateway could not check the AccessKey (503)",
    ],
    [
      "nobody there",
      () =>
        new TypeError("fetch failed", {
          cause: Object.assign(new Error("x"), { code: "ECONNREFUSED" }),
        }),
      `${BASE} does not answer: ECONNREFUSED`,
    ],
    [
      "silence",
      () => new DOMException("x", "TimeoutError"),
      "does not answer: nothing within 15 s",
    ],
  ])("%s: nothing is kept, and what was stays", async (_name, response, words) => {
    await world.run("login", BASE, "--access-key", "-");
    const before = readFileSync(file, "utf8");
    answers(response());
    const ran = await world.run("login", BASE, "--access-key", "-");
    expect([ran.code, ran.stdout]).toEqual([1, ""]);
    expect(ran.stderr).toContain(words);
    expect(ran.stderr).not.toContain(KEY);
    expect(readFileSync(file, "utf8")).toBe(before);
    expect(readdirSync(path.dirname(file))).toEqual(["config.yaml"]);
  });

  test.each<[string, readonly string[], number, string]>([
    ["no address", ["gateway.example.com"], 2, "is not the address of a gateway"],
    [
      "a scheme of another kind",
      ["ftp://gateway.example.com"],
      2,
      "is not the address of a gateway",
    ],
    ["a host and port alone", ["localhost:8080"], 2, "is not the address of a gateway"],
    ["a password in it", ["https://u:hunter2@gateway.example.com"], 2, "must not hold a user"],
    ["a query", [`${BASE}?x=1`], 2, "must not hold a user, a password, a query"],
    ["no key", [BASE], 2, "an AccessKey is needed"],
    [
      "a vendor's key",
      [BASE, "--access-key", "sk-ant-api03-vendor-AA"],
      1,
      "this is not an AccessKey",
    ],
    [
      "a workload token",
      [BASE, "--access-key", `svcw_${KEY.slice(4)}`],
      1,
      "this is not an AccessKey",
    ],
  ])("%s: nobody is asked", async (_name, args, code, words) => {
    const ran = await world.run("login", ...args);
    expect([ran.code, requests]).toEqual([code, []]);
    expect(ran.stderr).toContain(words);
    expect(ran.stderr).not.toMatch(/hunter2|vendor|svcw_/);
    expect(existsSync(file)).toBe(false);
  });

  test("a folder that cannot be written", async () => {
    writeFileSync(path.join(dir, "svc"), "a file");
    const ran = await world.run("login", BASE, "--access-key", "-");
    expect([ran.code, ran.stderr]).toEqual([1, `svc: ${file} cannot be written (EEXIST)\n`]);
  });
});

test("the file is in ~/.config where XDG_CONFIG_HOME is unset, empty or relative", async () => {
  for (const env of [
    { HOME: dir },
    { HOME: dir, XDG_CONFIG_HOME: "" },
    { HOME: dir, XDG_CONFIG_HOME: "rel" },
  ]) {
    world.env = env;
    await world.run("login", BASE, "--access-key", "-");
    expect(existsSync(path.join(dir, ".config/svc/config.yaml"))).toBe(true);
    rmSync(path.join(dir, ".config"), { recursive: true });
  }
});

test("logout", async () => {
  await world.run("login", BASE, "--access-key", "-");
  expect(await world.run("logout")).toEqual({ code: 0, stdout: "", stderr: "Logged out.\n" });
  expect(existsSync(file)).toBe(false);
  expect(await world.run("logout")).toEqual({
    code: 0,
    stdout: "",
    stderr: "Nobody was logged in.\n",
  });
});

describe("gateway env", () => {
  test("for each shell", async () => {
    await world.run("login", BASE, "--access-key", "-");
    expect((await world.run("gateway", "env")).stdout).toBe(
      [
        `export ANTHROPIC_BASE_URL='${BASE}/ext/v1'`,
        `export ANTHROPIC_API_KEY='sk-ant-api03-${KEY}-AA'`,
        "unset ANTHROPIC_AUTH_TOKEN",
        `export OPENAI_BASE_URL='${BASE}/ext/v1'`,
        `export OPENAI_API_KEY='${KEY}'`,
        "",
      ].join("\n"),
    );
    expect((await world.run("gateway", "env", "--shell", "fish")).stdout).toContain(
      `set -gx OPENAI_API_KEY '${KEY}'\n`,
    );
    expect((await world.run("gateway", "env", "--shell", "powershell")).stdout).toContain(
      `$Env:OPENAI_BASE_URL = '${BASE}/ext/v1'\n`,
    );
    expect((await world.run("gateway", "env", "--shell", "cmd")).code).toBe(2);
  });

  test.each([[["gateway", "env"]], [["gateway", "setup"]]])("%j without a login", async (args) => {
    expect(await world.run(...args)).toEqual({
      code: 1,
      stdout: "",
      stderr: "svc: not logged in: run svc login <base_url> first\n",
    });
  });

  test.each(["gateway: {baseURL: 5}", `gateway: [${KEY}`, "- a"])(
    "a file that is something else: %s",
    async (text) => {
      mkdirSync(path.dirname(file));
      writeFileSync(file, text);
      expect(await world.run("gateway", "env")).toEqual({
        code: 1,
        stdout: "",
        stderr: `svc: ${file} is not a file of svc login: log in again\n`,
      });
    },
  );
});

describe("gateway setup", () => {
  beforeEach(() => world.run("login", BASE, "--access-key", "-"));

  test("shows no key, and what to put where", async () => {
    const all = (await world.run("gateway", "setup")).stdout;
    expect(all).not.toContain(KEY);
    for (const name of ["Claude Code", "Anthropic SDKs", "OpenAI SDKs", "aider", "curl"])
      expect(all).toContain(name);
    expect(all).toContain(`Anthropic(base_url="${BASE}/ext/v1"`);
    expect(all).toContain(`OpenAI(base_url="${BASE}/ext/v1"`);
    expect((await world.run("gateway", "setup", "--client", "aider")).stdout).not.toContain(
      "Claude",
    );
    expect((await world.run("gateway", "setup", "--client", "vi")).code).toBe(2);
  });
});
