import http from "node:http";
import {
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Secret } from "../platform/secret.ts";
import { StartError } from "../host/errors.ts";
import { statePaths } from "../host/state.ts";
import { agentEnvironment, CARRIED } from "./agent-environment.ts";
import { type AgentGrant, askGrant } from "./agent-grant.ts";
import { sharesTerminal } from "./agent-process.ts";
import { resolveUser } from "./agent-user.ts";
import { assertAuditOwner } from "./audit-owner.ts";
import { makeRunFolder, removeRunFolder } from "./run-folder.ts";
import { keepSpecFile } from "./spec-file.ts";
import { findTools } from "./tools.ts";

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
});

afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

describe("who the command is", () => {
  const passwd =
    "root:x:0:0::/root:/bin/sh\nann:x:1000:1001::/home/ann:/bin/sh\ntoor:x:0:5::/:/bin/" +
    "sh\nwheel:x:7:0::/:/bin/sh\nhomeless:x:9:9:::\n";

  test.each([
    [undefined, { uid: 65_532, gid: 65_532, name: "agent", home: "/tmp" }],
    ["ann", { uid: 1000, gid: 1001, name: "ann", home: "/home/ann" }],
    ["1000", { uid: 1000, gid: 1001, name: "ann", home: "/home/ann" }],
    ["1000:7", { uid: 1000, gid: 7, name: "ann", home: "/home/ann" }],
    ["2000", { uid: 2000, gid: 2000, name: "agent", home: "/tmp" }],
    ["homeless", { uid: 9, gid: 9, name: "homeless", home: "/tmp" }],
  ])("%s", (text, user) => {
    expect(resolveUser(text, passwd)).toEqual(user);
  });

  test.each(["root", "toor", "0", "0:1000", "wheel", "1000:0", "00"])(
    "%s is root, by whatever name",
    (text) => {
      expect(() => resolveUser(text, passwd)).toThrow("must not run as root");
    },
  );

  test.each([
    "bob",
    "",
    "-1",
    "1000:",
    ":1000",
    "1000:ann",
    "4294967295",
    "9999999999",
    "+0",
    "0x0",
    " 0",
  ])("%j is nobody", (text) => {
    expect(() => resolveUser(text, passwd)).toThrow(StartError);
  });
});

describe("its environment", () => {
  const options = {
    user: { uid: 1, gid: 1, name: "ann", home: "/home/ann" },
    trustDir: "/trust",
    gatewayUrl: "http://127.0.0.1:8000",
    token: "svcw_t",
  };

  test("holds nothing of the caller's but what terminals and languages want", () => {
    const env = {
      PATH: "/bin",
      TERM: "xterm",
      LC_ALL: "C",
      TZ: "UTC",
      LD_PRELOAD: "x",
      NODE_OPTIONS: "x",
      AWS_SECRET_ACCESS_KEY: "x",
      HTTPS_PROXY: "x",
      SSH_AUTH_SOCK: "x",
      LCX: "x",
      OPENAI_API_KEY: "x",
      HOME: "/root",
    };
    const made = agentEnvironment({ ...options, env, extra: [] });
    expect(made).toMatchObject({
      PATH: "/bin",
      TERM: "xterm",
      LC_ALL: "C",
      TZ: "UTC",
      HOME: "/home/ann",
      OPENAI_API_KEY: "svcw_t",
      OPENAI_BASE_URL: "http://127.0.0.1:8000/v1",
      SSL_CERT_FILE: "/trust/ca-bundle.crt",
    });
    expect(Object.values(made)).not.toContain("x");
  });

  test("and what is added", () => {
    expect(
      agentEnvironment({
        ...options,
        env: { B: "from here" },
        extra: ["A=1=2\n3", "B", "PATH=/own", "E="],
      }),
    ).toMatchObject({ A: "1=2\n3", B: "from here", PATH: "/own", E: "" });
    expect(() => agentEnvironment({ ...options, env: {}, extra: ["NOT_SET"] })).toThrow(
      "NOT_SET: it is not set here",
    );
    expect(() => agentEnvironment({ ...options, env: {}, extra: [`${CARRIED}0=x`] })).toThrow(
      "are reserved for svc",
    );
    expect(() => agentEnvironment({ ...options, env: {}, extra: ["a b=secret"] })).toThrow(
      /^--env "a b": expected NAME=value/,
    );
  });
});

describe.runIf(process.getuid?.() === 0)(
  "where svc run, as root, writes for a user's svc up",
  () => {
    const USER = 65_532;

    function place(owners: { readonly dir: number; readonly keyFile: number }): {
      readonly dir: string;
      readonly keyFile: string;
    } {
      const files = { dir: path.join(dir, "audit"), keyFile: path.join(dir, "audit.key") };
      mkdirSync(files.dir);
      writeFileSync(files.keyFile, "key");
      chownSync(files.dir, owners.dir, owners.dir);
      chownSync(files.keyFile, owners.keyFile, owners.keyFile);
      return files;
    }

    test("is that user's own", () => {
      const files = place({ dir: USER, keyFile: USER });
      chownSync(dir, USER, USER);
      expect(() => assertAuditOwner(files, dir)).not.toThrow();
    });

    test.each([
      ["a folder of root's", { dir: 0, keyFile: USER }, /audit folder .* belongs to the user 0/],
      ["a key of root's", { dir: USER, keyFile: 0 }, /audit key .* belongs to the user 0/],
    ])("not %s", (_name, owners, message) => {
      const files = place(owners);
      chownSync(dir, USER, USER);
      expect(() => assertAuditOwner(files, dir)).toThrow(StartError);
      expect(() => assertAuditOwner(files, dir)).toThrow(message);
    });

    test("not by a link to a folder of root's, nor where nothing is", () => {
      const files = place({ dir: USER, keyFile: USER });
      chownSync(dir, USER, USER);
      symlinkSync("/etc", path.join(dir, "link"));
      expect(() => assertAuditOwner({ ...files, dir: path.join(dir, "link") }, dir)).toThrow(
        /belongs to the user 0/,
      );
      expect(() => assertAuditOwner({ ...files, dir: path.join(dir, "none") }, dir)).toThrow(
        /does not exist/,
      );
    });
  },
);

test("the terminal is shared only where nobody can type into it", () => {
  expect(sharesTerminal(true, () => "0\n")).toBe(true);
  expect(sharesTerminal(true, () => "1\n")).toBe(false);
  expect(sharesTerminal(false, () => "0\n")).toBe(false);
  const missing = (): string => {
    throw new Error("ENOENT");
  };
  expect(sharesTerminal(true, missing)).toBe(false);
});

test("what a machine lacks is told", () => {
  expect(() => findTools("darwin", 0)).toThrow("svc run needs Linux");
  expect(() => findTools("linux", 1000)).toThrow(/svc run needs root.*sudo svc run/);
  expect(findTools("linux", 0).unshare).toMatch(/\/unshare$/);
});

describe("the run's folder", () => {
  test("is the caller's alone, but for what the agent is to see", () => {
    const folder = makeRunFolder(dir, ["api.example.com"]);
    const mode = (file: string): string => (statSync(file).mode & 0o777).toString(8);
    expect([folder.dir, folder.sidecarDir, folder.trustDir, folder.etcDir].map(mode)).toEqual([
      "700",
      "700",
      "755",
      "755",
    ]);
    expect(readFileSync(path.join(folder.etcDir, "hosts"), "utf8")).toContain(
      "127.0.0.1 api.example.com\n",
    );
    expect(readFileSync(path.join(folder.etcDir, "nsswitch.conf"), "utf8")).toContain(
      "hosts: files dns\n",
    );
    removeRunFolder(folder);
    expect(readdirSync(dir)).toEqual([]);
  });

  test("is not made for hosts that are none", () => {
    expect(() => makeRunFolder(dir, ["a b"])).toThrow(RangeError);
    expect(readdirSync(dir)).toEqual([]);
  });

  test("stays while its process does", () => {
    const first = makeRunFolder(dir, []);
    makeRunFolder(dir, []);
    expect(readdirSync(dir)).toContain(path.basename(first.dir));
    expect(readdirSync(dir)).toHaveLength(2);
  });
});

describe("what svc up gives", () => {
  const secret = "c2VjcmV0";
  const good = {
    specs: { version: 1, bindings: [{ name: "a", auth: { env: { token: "SVC_SECRET_A" } } }] },
    secrets: { SVC_SECRET_A: secret },
    gateway: { address: "127.0.0.1", port: 8000 },
    token: "svcw_t",
    hosts: ["api.example.com", "*.example.org"],
    later: "ignored",
  };

  async function given(status: number, body: unknown): Promise<AgentGrant> {
    const state = statePaths(dir, {});
    const server = http.createServer((request, response) => {
      expect(request.url).toBe("/agents/team%2Fa/co%3Fder/sidecar");
      response.writeHead(status).end(typeof body === "string" ? body : JSON.stringify(body));
    });
    await new Promise<void>((resolve) => server.listen(state.controlSocket, resolve));
    try {
      return await askGrant(state, "team/a", "co?der");
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  test("is taken, with its secrets sealed, and without patterns", async () => {
    const grant = await given(200, good);
    expect(grant.hosts).toEqual(["api.example.com"]);
    expect(grant.secrets["SVC_SECRET_A"]?.reveal()).toBe(secret);
    expect(JSON.stringify(grant)).not.toContain(secret);
    expect(JSON.stringify(grant)).not.toContain("svcw_t");
  });

  test.each<[string, number, unknown, RegExp]>([
    ["refused in words", 404, { error: "Agent a/b: there is none" }, /^Agent a\/b: there is none$/],
    ["refused without", 500, "oops", /status 500/],
    ["not JSON", 200, "oops", /is not valid/],
    [
      "half of it",
      200,
      { ...good, gateway: { address: "x", port: 0 }, token: undefined },
      /is not valid \(gateway\.port, token\)/,
    ],
    ...["PATH", "LD_PRELOAD", "NODE_OPTIONS", "BASH_ENV", "UV_THREADPOOL_SIZE", "A=B", ""].flatMap(
      (name): [string, number, unknown, RegExp][] => [
        [`a secret named ${name}`, 200, { ...good, secrets: { [name]: secret } }, /no Provider/],
        [
          `a secret named ${name}, by a Provider's spec`,
          200,
          {
            ...good,
            specs: { bindings: [{ auth: { env: { token: name } } }] },
            secrets: { [name]: secret },
          },
          /no Provider/,
        ],
      ],
    ),
    [
      "a secret that no spec names",
      200,
      { ...good, secrets: { SVC_SECRET_A: secret, SVC_SECRET_B: secret } },
      /"SVC_SECRET_B", which no Provider/,
    ],
    ["a host that is a line", 200, { ...good, hosts: ["a\n127.0.0.1 b"] }, /not a host name/],
  ])("%s", async (_name, status, body, message) => {
    const error = await given(status, body).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StartError);
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).not.toContain(secret);
  });

  test("nothing, where none runs", async () => {
    await expect(askGrant(statePaths(dir, {}), "default", "coder")).rejects.toThrow(
      /No svc up answers.*--state-dir/,
    );
  });
});

describe("the file of specs", () => {
  const grant = (specs: unknown, secret = "a"): AgentGrant => ({
    specs,
    secrets: { A: new Secret(secret) },
    gateway: { address: "127.0.0.1", port: 1 },
    token: new Secret("t"),
    hosts: ["a.example"],
    private: [],
  });

  /** Requests are answered as configured by a test, one at a time. */
  async function kept(
    answers: readonly (AgentGrant | Error)[],
  ): Promise<{ text: string; warnings: string[] }> {
    const warnings: string[] = [];
    const log = pino(
      { level: "warn" },
      { write: (line: string) => void warnings.push((JSON.parse(line) as { msg: string }).msg) },
    );
    const file = path.join(dir, "specs.json");
    const over = Promise.withResolvers<void>();
    const rest = [...answers];
    const ask = (): Promise<AgentGrant> => {
      const next = rest.shift();
      if (next === undefined) {
        over.resolve();
        return new Promise(() => undefined);
      }
      return next instanceof Error ? Promise.reject(next) : Promise.resolve(next);
    };
    const keeper = keepSpecFile({ file, first: grant({ version: 1 }), ask, pollMs: 1, log });
    expect(readFileSync(file, "utf8")).toBe('{"version":1}\n');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await over.promise;
    keeper.close();
    expect(readdirSync(dir)).toEqual(["specs.json"]);
    return { text: readFileSync(file, "utf8"), warnings };
  }

  test("follows svc up's, also after it was away", async () => {
    expect(await kept([grant({ version: 2 }), new Error("away"), grant({ version: 3 })])).toEqual({
      text: '{"version":3}\n',
      warnings: [],
    });
  });

  test("stays, and says so once, where a sidecar must start anew", async () => {
    const { text, warnings } = await kept([grant({ version: 2 }, "b"), grant({ version: 3 }, "b")]);
    expect(text).toBe('{"version":1}\n');
    expect(warnings).toEqual([expect.stringContaining("start svc run again")]);
  });
});
