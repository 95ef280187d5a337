/** The built command line with a real svc up, as a platform team uses it. */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ROOT } from "../support/build.ts";
import { freePort, type Ran, Stack, svc } from "../support/stack.ts";
import { until } from "../support/wait.ts";

const RESOURCES = `
apiVersion: svc.io/v1
kind: ModelProvider
metadata: {name: mock}
spec: {provider: mock, externalAccess: {enabled: true}}
`;

const AGENT = `# the greeter
apiVersion: svc.io/v1
kind: Agent
metadata:
  name: hello # its name
spec:
  models: ["mock/*"]
`;

const MESSAGE = JSON.stringify({ model: "echo", messages: [{ role: "user", content: "Hello" }] });

let stack: Stack;
let external: number;
let config: string;

beforeAll(async () => {
  stack = await Stack.start({ files: { "mock.yaml": RESOURCES } });
  external = stack.externalPort;
  config = mkdtempSync(path.join(os.tmpdir(), "svc-e2e-config-"));
});

afterAll(async () => {
  await stack?.stop();
  rmSync(config, { recursive: true, force: true });
});

/** With the state folder in the environment, as in a user's shell. */
function run(...args: string[]): Promise<Ran> {
  return svc(args, { SVC_STATE_DIR: stack.stateDir, XDG_CONFIG_HOME: config });
}

async function done(...args: string[]): Promise<Ran> {
  const ran = await run(...args);
  expect(ran, args.join(" ")).toMatchObject({ code: 0 });
  return ran;
}

/** Status of a call through the external gateway. */
async function callWith(
  key: string,
  url = `http://127.0.0.1:${external}/ext/v1/chat/completions`,
): Promise<number> {
  const response = await fetch(url, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: MESSAGE,
  });
  await response.arrayBuffer();
  return response.status;
}

function file(name: string, text: string): string {
  const full = path.join(stack.dir, name);
  writeFileSync(full, text);
  return full;
}

describe("an Agent", () => {
  test("applied is in force at once, and is got as it was written", async () => {
    const yaml = file("agent.yaml", AGENT);
    expect((await done("apply", "-f", yaml)).stdout).toBe("agent/hello created\n");
    const token = (await done("token", "hello")).stdout.trim();
    expect(await callWith(token, `${stack.baseUrl}/v1/chat/completions`)).toBe(200);
    // The usage of the call is settled once its answer has been sent.
    await until(
      async () => /^hello +yes +Ready +[1-9]\d* +1 +\$/m.test((await done("get", "agents")).stdout),
      { what: "the call to be counted" },
    );
    expect((await done("apply", "-f", yaml)).stdout).toBe("agent/hello unchanged\n");
    const kept = path.join(stack.resourcesDir, "applied/agent.default.hello.yaml");
    expect(readFileSync(kept, "utf8")).toContain("# the greeter");
    expect(statSync(kept).mode & 0o777).toBe(0o600);
    expect((await done("get", "agents")).stdout).toMatch(
      /^NAME +READY +REASON +TOKENS +REQUESTS +COST\nhello +yes +Ready /,
    );
    const definition = (await done("get", "agent-def", "hello")).stdout;
    expect((await done("apply", "-f", file("again.yaml", definition))).stdout).toBe(
      "agent/hello configured\n",
    );
    expect((await done("get", "metrics")).stdout).toContain("svc_llm_requests_total");
  });

  test("that is wrong is refused whole, with places", async () => {
    const ran = await run(
      "apply",
      "-f",
      file(
        "bad.yaml",
        `${AGENT.replace("hello", "other")}---\n${AGENT.replace("models:", "modles:")}`,
      ),
    );
    expect([ran.code, ran.stdout]).toEqual([1, ""]);
    expect(ran.stderr).toMatch(
      /^svc: \S+bad\.yaml:15: Agent hello: spec\.modles: unknown field; did you mean models\? \([^\n]*\)\n$/,
    );
    expect((await run("get", "agent", "other")).code).toBe(1);
  });

  test("of another file of the folder is left alone", async () => {
    const ran = await run("apply", "-f", file("mock.yaml", RESOURCES));
    expect([ran.code, ran.stderr]).toEqual([
      1,
      expect.stringContaining("ModelProvider default/mock is defined in mock.yaml:2"),
    ]);
    expect((await run("delete", "model-provider", "mock")).stderr).toContain(
      "is defined in mock.yaml:2",
    );
  });

  test("deleted is gone at once", async () => {
    const token = (await done("token", "hello")).stdout.trim();
    expect((await done("delete", "agent", "hello")).stdout).toBe("agent/hello deleted\n");
    expect(await callWith(token, `${stack.baseUrl}/v1/chat/completions`)).toBe(401);
    expect((await run("token", "hello")).code).toBe(1);
    expect(
      readdirSync(path.join(stack.resourcesDir, "applied")).filter((name) =>
        name.startsWith("agent."),
      ),
    ).toEqual([]);
  });
});

test("without Redis the gateway logs one warning", async () => {
  await until(() => stack.logs.includes("no Redis is configured"), { what: "the warning" });
  expect(stack.logs.match(/no Redis is configured/g)).toHaveLength(1);
});

test("an Agent as root is accepted, fails, and may not call", async () => {
  const yaml = file("root.yaml", `${AGENT.replace("hello", "root")}  runAsUser: 0\n`);
  expect((await done("apply", "-f", yaml)).stdout).toBe(
    "agent/root created: not in use: RunsAsRoot: spec.runAsUser must not be 0: agents never run " +
      "as root\n",
  );
  expect((await done("get", "agent", "root", "-o", "yaml")).stdout).toContain("phase: Failed");
  const token = (await done("token", "root")).stdout.trim();
  expect(await callWith(token, `${stack.baseUrl}/v1/chat/completions`)).toBe(403);
  await done("delete", "agent", "root");
});

test("spec.system has no effect yet, which apply says", async () => {
  const yaml = file("system.yaml", `${AGENT.replace("hello", "system")}  system: Be brief.\n`);
  expect((await done("apply", "-f", yaml)).stdout).toBe(
    "agent/system created: in use, with a warning: FieldsWithoutEffect: spec.system has no " +
      "effect yet, because there are no sessions\n",
  );
  await done("delete", "agent", "system");
});

test("prices by a ConfigMap are in force at once, until it is deleted", async () => {
  await done("apply", "-f", file("agent.yaml", AGENT));
  const token = (await done("token", "hello")).stdout.trim();
  const cost = async (): Promise<string | null> => {
    const response = await fetch(`${stack.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: MESSAGE,
    });
    const { usage } = (await response.json()) as {
      usage: { prompt_tokens: number; completion_tokens: number };
    };
    const perToken = Number(response.headers.get("x-svc-cost-usd"));
    return response.headers.get("x-svc-cost-usd") === null
      ? null
      : (perToken / (usage.prompt_tokens + usage.completion_tokens)).toFixed(6);
  };
  expect(await cost()).toBeNull();
  const prices = file(
    "prices.yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: svc-model-prices}\ndata:\n" +
      "  prices.yaml: |\n    echo: {input: 2000, output: 2000}\n",
  );
  expect((await done("apply", "-f", prices)).stdout).toBe("config-map/svc-model-prices created\n");
  expect(await cost()).toBe("0.002000");
  const shown = (await done("get", "configmap", "svc-model-prices", "-o", "yaml")).stdout;
  expect(shown).toContain("echo: {input: 2000, output: 2000}");
  const again = await done("apply", "-f", file("prices-again.yaml", shown));
  expect(again.stdout).toMatch(/^config-map\/svc-model-prices (?:configured|unchanged)\n$/);
  const bad = await run("apply", "-f", file("bad.yaml", shown.replace("input: 2000", "input: x")));
  expect([bad.code, bad.stderr]).toEqual([
    1,
    expect.stringContaining("data.prices.yaml: echo.input: must be US dollars per million tokens"),
  ]);
  await done("delete", "configmap", "svc-model-prices");
  expect(await cost()).toBeNull();
  await done("delete", "agent", "hello");
});

test("an AccessKey from its making to its end", async () => {
  const created = await done(
    "access-key",
    "create",
    "--name",
    "laptop",
    "--model-provider",
    "mock",
    "--expires",
    "1h",
    "--allowed-model",
    "echo",
  );
  expect(created.stdout).toMatch(/^svc_[0-9A-Za-z]{43}\n$/);
  const first = created.stdout.trim();
  expect(await callWith(first)).toBe(200);

  const second = (await done("access-key", "rotate", "laptop", "--grace", "1h")).stdout.trim();
  expect([await callWith(first), await callWith(second)]).toEqual([200, 200]);
  const third = (await done("access-key", "rotate", "laptop", "--wrapped")).stdout.trim();
  expect(third).toMatch(/^sk-ant-api03-svc_[0-9A-Za-z]{43}-AA$/);
  expect([await callWith(first), await callWith(second), await callWith(third)]).toEqual([
    401, 401, 200,
  ]);

  const listed = (await done("access-key", "list", "-o", "wide")).stdout;
  expect(listed).toMatch(/laptop +mock +yes +Ready .* in 59m/);
  expect(listed).not.toMatch(/[0-9a-f]{64}/);

  expect((await done("access-key", "revoke", "laptop")).stdout).toBe("access-key/laptop revoked\n");
  expect(await callWith(third)).toBe(401);
  expect((await done("get", "access-keys")).stdout).toContain("KeyRevoked");
  expect((await run("access-key", "rotate", "laptop")).code).toBe(1);
  const kept = `${stack.logs}\n${everyFile(stack.dir)}`;
  expect(kept).toContain("kind: AccessKey");
  for (const key of [first, second, third.slice("sk-ant-api03-".length, -"-AA".length)])
    expect(kept).not.toContain(key);
  await done("access-key", "delete", "laptop");
  expect((await run("access-key", "delete", "laptop")).code).toBe(1);
});

test("a key that expires says so, and nobody has to edit anything", async () => {
  const key = (
    await done(
      "access-key",
      "create",
      "--name",
      "brief",
      "--model-provider",
      "mock",
      "--expires",
      "3s",
    )
  ).stdout.trim();
  expect(await callWith(key)).toBe(200);
  await until(async () => (await done("get", "access-keys")).stdout.includes("KeyExpired"), {
    what: "the key to expire",
  });
  expect(await callWith(key)).toBe(401);
  await done("access-key", "delete", "brief");
});

test("two rotations at once: whoever got a key has the key in force", async () => {
  await done("access-key", "create", "--name", "race", "--model-provider", "mock");
  const both = await Promise.all([
    run("access-key", "rotate", "race"),
    run("access-key", "rotate", "race"),
  ]);
  const winners = both.filter(({ code }) => code === 0);
  expect(winners.length).toBeGreaterThan(0);
  for (const loser of both.filter(({ code }) => code !== 0))
    expect([loser.stdout, loser.stderr]).toEqual([
      "",
      expect.stringContaining("has changed in the meantime"),
    ]);
  // If one ran completely after the other, both got a key, and the later one counts.
  const open = await Promise.all(winners.map(({ stdout }) => callWith(stdout.trim())));
  expect(open.filter((status) => status === 200)).toHaveLength(1);
  await done("access-key", "delete", "race");
});

describe("an API key", () => {
  const KEY = "sk-e2e-cli-5bGvQ2w9";

  test("from standard input is in no list of processes, log or output", async () => {
    const child = spawn(
      process.execPath,
      [
        path.join(ROOT, "dist/svc.js"),
        "create",
        "model-provider",
        "openai",
        "--provider",
        "openai",
        "--api-key",
        "-",
        "--base-url",
        "http://127.0.0.1:1/v1",
      ],
      {
        env: { ...process.env, SVC_STATE_DIR: stack.stateDir },
        stdio: ["pipe", "pipe", "pipe"],
      },
    );
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (part: Buffer) => (output += part.toString()));
    // All running processes, while the command waits for the key and once it has it.
    const commands = (): string =>
      readdirSync("/proc")
        .filter((name) => /^\d+$/.test(name))
        .map((pid) =>
          ["cmdline", "environ"].map((what) => readOrNothing(`/proc/${pid}/${what}`)).join("\n"),
        )
        .join("\n");
    await until(() => readOrNothing(`/proc/${child.pid ?? 0}/cmdline`).includes("model-provider"), {
      what: "the command to run",
    });
    expect(commands()).toContain("--api-key\0-");
    child.stdin.write(KEY);
    expect(commands()).not.toContain(KEY);
    child.stdin.end("\n");
    let seen = "";
    const code = await new Promise<number | null>((resolve) => {
      const look = setInterval(() => (seen += commands()), 5);
      child.on("close", (ended) => {
        clearInterval(look);
        resolve(ended);
      });
    });
    expect([code, output]).toEqual([0, "secret/openai created\nmodel-provider/openai created\n"]);
    expect(`${seen}${commands()}`).not.toContain(KEY);
    expect(stack.logs).not.toContain(KEY);
    expect(stack.logs).not.toContain(Buffer.from(KEY).toString("base64"));
    const shown = await Promise.all(
      [
        ["status", "-o", "json"],
        ["get", "secrets", "-o", "json"],
        ["get", "mp", "-A", "-o", "yaml"],
      ].map((args) => done(...args)),
    );
    for (const { stdout, stderr } of shown)
      expect(`${stdout}${stderr}`).not.toMatch(
        new RegExp(`${KEY}|${Buffer.from(KEY).toString("base64")}`),
      );
  });

  test("is replaced on request alone", async () => {
    const key = file("key", "sk-e2e-other\n");
    const args = [
      "create",
      "model-provider",
      "openai",
      "--provider",
      "openai",
      "--api-key-file",
      key,
    ];
    expect((await run(...args)).stderr).toContain("exists already");
    expect((await done(...args, "--replace")).stdout).toBe(
      "secret/openai configured\nmodel-provider/openai configured\n",
    );
    await done("delete", "model-provider/openai");
    await done("delete", "secret/openai");
  });
});

describe("login", () => {
  let key: string;

  beforeAll(async () => {
    key = (
      await done("access-key", "create", "--name", "me", "--model-provider", "mock")
    ).stdout.trim();
  });

  test("verifies the key, and gateway env opens the gateway to a shell", async () => {
    const base = `http://127.0.0.1:${external}`;
    const refused = await run("login", base, "--access-key", `svc_${"0".repeat(43)}`);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining("the gateway refused the AccessKey (401)"),
    ]);
    expect((await done("login", base, "--access-key", key)).stderr).toContain(
      `Logged in at ${base}`,
    );
    expect(statSync(path.join(config, "svc/config.yaml")).mode & 0o777).toBe(0o600);
    const script =
      `eval "$(${process.execPath} ${path.join(ROOT, "dist/svc.js")} gateway env)"; printf ` +
      `'%s\\n' "$OPENAI_BASE_URL" "$OPENAI_API_KEY" "$ANTHROPIC_BASE_URL" ` +
      `"$ANTHROPIC_API_KEY" "\${ANTHROPIC_AUTH_TOKEN-unset}"`;
    const [openai = "", openaiKey = "", anthropic = "", anthropicKey = "", token] = execFileSync(
      "sh",
      ["-c", script],
      {
        encoding: "utf8",
        env: { ...process.env, XDG_CONFIG_HOME: config, ANTHROPIC_AUTH_TOKEN: "other" },
      },
    ).split("\n");
    expect([openaiKey, anthropicKey, token]).toEqual([key, `sk-ant-api03-${key}-AA`, "unset"]);
    expect(await callWith(openaiKey, `${openai}/chat/completions`)).toBe(200);
    const message = await fetch(`${anthropic}/v1/messages`, {
      method: "POST",
      headers: {
        "x-api-key": anthropicKey,
        "anthropic-version": "2023-06-01",
        "content-type": "application/json",
      },
      body: JSON.stringify({ ...(JSON.parse(MESSAGE) as object), max_tokens: 16 }),
    });
    expect([message.status, await message.json()]).toMatchObject([200, { type: "message" }]);
    expect((await done("gateway", "setup")).stdout).not.toContain(key);
    await done("logout");
    expect((await run("gateway", "env")).code).toBe(1);
  });
});

test("completion knows the objects that are there, and the script is bash", async () => {
  const script = (await done("completion", "bash")).stdout;
  execFileSync("bash", ["-n"], { input: script });
  expect((await done("__complete", "--", "get", "model-providers", "")).stdout).toBe("mock\n");
  expect((await done("__complete", "--", "access-key", "ro")).stdout).toBe("rotate\n");
});

describe("exit codes", () => {
  test.each([
    [["--version"], 0],
    [["get", "--help"], 0],
    [["get", "agents"], 0],
    [["get", "agent", "none"], 1],
    [["get", "nothing"], 2],
    [["nothing"], 2],
    [["apply"], 2],
    [["access-key"], 2],
  ])("svc %j: %i", async (args, code) => {
    const ran = await run(...args);
    expect(ran.code).toBe(code);
    expect(ran.stderr).not.toMatch(/^\s+at /m);
  });

  test("a reader that has enough is no error", () => {
    const command =
      `${process.execPath} ${path.join(ROOT, "dist/svc.js")} get metrics -o wide | head -n ` +
      `1; echo "\${PIPESTATUS[0]}"`;
    const said = execFileSync("bash", ["-c", command], {
      encoding: "utf8",
      env: { ...process.env, SVC_STATE_DIR: stack.stateDir },
      stdio: ["ignore", "pipe", "pipe"],
    });
    expect(said.trimEnd().split("\n").at(-1)).toBe("0");
  });
});

test("two svc up share a folder, and both serve what is applied", async () => {
  const other = path.join(stack.dir, "other");
  const port = await freePort();
  const child = spawn(
    process.execPath,
    [
      path.join(ROOT, "dist/svc.js"),
      "up",
      "--resources",
      stack.resourcesDir,
      "--port",
      String(port),
      "--external-port",
      "off",
      "--state-dir",
      other,
    ],
    { stdio: "ignore" },
  );
  const exited = new Promise((resolve) => child.on("exit", resolve));
  try {
    await until(async () => (await svc(["status", "--state-dir", other])).code === 0, {
      what: "the second svc up",
    });
    await done("apply", "-f", file("shared.yaml", AGENT.replace("hello", "shared")));
    await until(
      async () => (await svc(["get", "agent", "shared", "--state-dir", other])).code === 0,
      { what: "the other to see it" },
    );
    expect((await svc(["delete", "agent", "shared", "--state-dir", other])).stdout).toBe(
      "agent/shared deleted\n",
    );
    await until(async () => (await run("get", "agent", "shared")).code === 1, {
      what: "the first to see that it is gone",
    });
  } finally {
    child.kill("SIGTERM");
    await exited;
  }
}, 300_000);

/** The text of every file below a folder: state, audit chains and resources. */
function everyFile(dir: string): string {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(path.join(entry.parentPath, entry.name), "latin1"))
    .join("\n");
}

function readOrNothing(name: string): string {
  try {
    return readFileSync(name, "utf8");
  } catch {
    return "";
  }
}

test("svc up shows a token to a terminal, and svc token prints it elsewhere", async () => {
  const dir = mkdtempSync(path.join(os.tmpdir(), "svc-e2e-tty-"));
  writeFileSync(path.join(dir, "all.yaml"), `${RESOURCES}---\n${AGENT}`);
  const state = path.join(dir, "state");
  const up = [
    [process.execPath, path.join(ROOT, "dist/svc.js"), "up", "--resources", dir],
    ["--state-dir", state, "--port", String(await freePort()), "--external-port", "off"],
  ]
    .flat()
    .join(" ");
  // util-linux's script gives it a terminal.
  const child = spawn("script", ["--quiet", "--return", "--command", `exec ${up}`, "/dev/null"], {
    stdio: ["pipe", "pipe", "ignore"],
  });
  const ended = new Promise((resolve) => child.once("close", resolve));
  let output = "";
  child.stdout.on("data", (part: Buffer) => (output += part.toString()));
  try {
    await until(() => output.includes("curl "), { what: "svc up to serve" });
    const { stdout } = await svc(["token", "hello", "--state-dir", state]);
    expect(stdout).toMatch(/^svcw_/);
    expect(output.replaceAll(/\s/g, "")).toContain(`Bearer${stdout.trim()}`);
  } finally {
    child.stdin.end("\u0003");
    await ended;
    rmSync(dir, { recursive: true, force: true });
  }
});
