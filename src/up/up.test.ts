import { parse } from "yaml";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import tls from "node:tls";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { writeBootstrap } from "./bootstrap.ts";
import { caBundleOf, findCaBundle } from "../host/ca-bundle.ts";
import { envoyLineLogger } from "./envoy-log.ts";
import { StartError } from "../host/errors.ts";
import { envoyOfRun, envoyOfUp, findEnvoy } from "../host/find-envoy.ts";
import { assertPortFree } from "./ports.ts";
import { makeRunDir, prepareState, type StatePaths, statePaths } from "../host/state.ts";
import { startUp, type Up, type UpOptions } from "./up.ts";
import type { GuardOptions } from "./guard-process.ts";
import { eventually } from "../../e2e/support/wait.ts";

const guardOf = (type: GuardOptions["type"], model?: string, upstream?: string): GuardOptions => ({
  type,
  model,
  upstream,
});

let dir: string;

beforeEach(() => {
  dir = realpathSync(mkdtempSync(path.join(os.tmpdir(), "svc-test-")));
});

afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

function file(name: string, text = "", mode = 0o644): string {
  const whole = path.join(dir, name);
  mkdirSync(path.dirname(whole), { recursive: true });
  writeFileSync(whole, text);
  chmodSync(whole, mode);
  return whole;
}

describe("findEnvoy", () => {
  const find = (env: NodeJS.ProcessEnv, option?: string): string =>
    findEnvoy(envoyOfUp(option, env, dir, false));

  test("takes the option, ENVOY_PATH, then the PATH in its order, then the checkout's own", () => {
    const option = file("option", "", 0o755);
    const named = file("named", "", 0o755);
    const first = file("a/envoy", "", 0o755);
    const second = file("b/envoy", "", 0o755);
    const own = file(".venv/bin/envoy", "", 0o755);
    const PATH = [path.dirname(first), path.dirname(second)].join(path.delimiter);
    expect(find({ ENVOY_PATH: named, PATH }, option)).toBe(option);
    expect(find({ ENVOY_PATH: named, PATH })).toBe(named);
    expect(find({ ENVOY_PATH: "", PATH })).toBe(first);
    rmSync(first);
    expect(find({ PATH })).toBe(second);
    expect(find({ PATH: "" })).toBe(own);
    expect(find({})).toBe(own);
  });

  test("passes over what is no program, and over folders that depend on where one is", () => {
    mkdirSync(path.join(dir, "a/envoy"), { recursive: true });
    const plain = file("b/envoy");
    const program = file("c/envoy", "", 0o755);
    const relative = path.relative(process.cwd(), path.dirname(file("d/envoy", "", 0o755)));
    const PATH = [relative, ...["a", "b", "c"].map((name) => path.join(dir, name))].join(
      path.delimiter,
    );
    if (process.getuid?.() !== 0) expect(statSync(plain).mode & 0o111).toBe(0);
    expect(find({ PATH })).toBe(program);
  });

  test.each([["missing"], ["folder"], ["plain"]])(
    "an ENVOY_PATH that is %s is an error, not passed over",
    (name) => {
      mkdirSync(path.join(dir, "folder"));
      file("plain");
      file("a/envoy", "", 0o755);
      const env = { ENVOY_PATH: path.join(dir, name), PATH: path.join(dir, "a") };
      expect(() => find(env)).toThrow(StartError);
      expect(() => find(env)).toThrow(/^ENVOY_PATH is .*omit it\.$/);
    },
  );

  test("one that is named by a relative path is an error", () => {
    const program = path.relative(process.cwd(), file("a/envoy", "", 0o755));
    expect(() => find({ ENVOY_PATH: program })).toThrow(/^ENVOY_PATH is .*not an absolute path/);
    expect(() => find({}, program)).toThrow(/^--envoy is .*not an absolute path/);
  });

  test("says how to get one", () => {
    expect(() => find({ PATH: dir })).toThrow(/not found on the PATH.*make install.*ENVOY_PATH/);
  });

  describe("with root's rights", () => {
    const PATH = (): string => path.dirname(file("evil/envoy", "", 0o755));

    test("svc up takes none from the PATH, but from fixed folders and the checkout", () => {
      const fixed = file("usr/bin/envoy", "", 0o755);
      const own = file(".venv/bin/envoy", "", 0o755);
      const search = envoyOfUp(undefined, { PATH: PATH() }, dir, true);
      expect(findEnvoy(search, [path.dirname(fixed)])).toBe(fixed);
      expect(findEnvoy(search, [])).toBe(own);
      rmSync(own);
      expect(() => findEnvoy(search, ["/no/such"])).toThrow(
        /not found in \/no\/such\. .*ENVOY_PATH/,
      );
    });

    test("svc run takes none from any variable", () => {
      const own = file(".venv/bin/envoy", "", 0o755);
      const option = file("option", "", 0o755);
      expect(findEnvoy(envoyOfRun(undefined, dir), [])).toBe(own);
      expect(findEnvoy(envoyOfRun(option, dir), [])).toBe(option);
      expect(() => findEnvoy(envoyOfRun("option", dir), [])).toThrow(/not an absolute path/);
      rmSync(own);
      expect(() => findEnvoy(envoyOfRun(undefined, dir), [])).toThrow(/name it with --envoy\.$/);
    });
  });
});

describe("statePaths", () => {
  const home = path.join(os.homedir(), ".local/state/svc");

  test.each<[string, string | undefined, NodeJS.ProcessEnv, string]>([
    ["the option", "/o", { SVC_STATE_DIR: "/e", XDG_STATE_HOME: "/x" }, "/o"],
    ["the variable", undefined, { SVC_STATE_DIR: "/e", XDG_STATE_HOME: "/x" }, "/e"],
    ["the user's state folder", undefined, { XDG_STATE_HOME: "/x" }, "/x/svc"],
    ["its default", undefined, {}, home],
    ["empty variables are none", undefined, { SVC_STATE_DIR: "", XDG_STATE_HOME: "" }, home],
    ["a relative XDG_STATE_HOME is ignored", undefined, { XDG_STATE_HOME: "x" }, home],
    ["a relative option is of the current folder", "o", {}, path.resolve("o")],
  ])("%s", (_name, option, env, expected) => {
    expect(statePaths(option, env)).toEqual({
      dir: expected,
      controlSocket: path.join(expected, "svc.sock"),
      workloadKeyFile: path.join(expected, "workload.key"),
      auditDir: path.join(expected, "audit"),
      auditKeyFile: path.join(expected, "audit.key"),
      tokensDir: path.join(expected, "tokens"),
      runDir: path.join(expected, "run"),
    });
  });

  test("a path too long for a socket is refused, counted in bytes", () => {
    const longest = `/${"x".repeat(107 - 1 - "/run/envoy-admin.sock".length)}`;
    expect(path.join(statePaths(longest, {}).runDir, "envoy-admin.sock")).toHaveLength(107);
    expect(() => statePaths(`${longest}x`, {})).toThrow(StartError);
    expect(() => statePaths(`/${"ü".repeat(60)}`, {})).toThrow(/too long.*--state-dir/);
  });
});

describe("prepareState", () => {
  test("makes a folder and a key that are this user's alone, and keeps the key", () => {
    const paths = statePaths(path.join(dir, "deep/state"), {});
    prepareState(paths);
    const key = readFileSync(paths.workloadKeyFile);
    expect(key).toHaveLength(32);
    expect(statSync(paths.dir).mode & 0o777).toBe(0o700);
    expect(statSync(paths.workloadKeyFile).mode & 0o777).toBe(0o600);
    prepareState(paths);
    expect(readFileSync(paths.workloadKeyFile).equals(key)).toBe(true);
  });

  const broken: readonly (readonly [string, (paths: StatePaths) => void, RegExp])[] = [
    [
      "a workload key that others may read",
      ({ workloadKeyFile }) => chmodSync(workloadKeyFile, 0o644),
      /^The workload key .*workload\.key is open to others \(mode 644\): chmod 600 .*workload\.key$/,
    ],
    [
      "a workload key that is a link",
      ({ workloadKeyFile }) => {
        renameSync(workloadKeyFile, `${workloadKeyFile}.real`);
        symlinkSync(`${workloadKeyFile}.real`, workloadKeyFile);
      },
      /workload\.key is a symbolic link/,
    ],
    [
      "an audit key that others may read",
      ({ auditKeyFile }) => writeFileSync(auditKeyFile, "key", { mode: 0o640 }),
      /^The audit key .*audit\.key is open to others \(mode 640\): chmod 600/,
    ],
    [
      "an audit key that is a link to nowhere, which a start would follow to make one",
      ({ auditKeyFile }) => symlinkSync(path.join(dir, "elsewhere"), auditKeyFile),
      /^The audit key .* is a symbolic link/,
    ],
    [
      "a folder that others may write to",
      (paths) => chmodSync(paths.dir, 0o777),
      /^The state folder .* can be written to by others \(mode 777\): chmod go-w/,
    ],
    ...(process.getuid?.() === 0
      ? [
          [
            "a workload key of another user",
            ({ workloadKeyFile }: StatePaths) => chownSync(workloadKeyFile, 65_532, 65_532),
            /belongs to the user 65532, not to the user 0 that svc runs as: chown 0/,
          ] as const,
        ]
      : []),
  ];

  test.each(broken)("%s is refused", (_name, spoil, message) => {
    const paths = statePaths(path.join(dir, "state"), {});
    prepareState(paths);
    spoil(paths);
    expect(() => prepareState(paths)).toThrow(StartError);
    expect(() => prepareState(paths)).toThrow(message);
    expect(existsSync(path.join(dir, "elsewhere"))).toBe(false);
  });

  test("a folder that cannot be made is told", () => {
    file("taken");
    expect(() => prepareState(statePaths(path.join(dir, "taken/state"), {}))).toThrow(
      /cannot be created.*--state-dir/,
    );
  });
});

test("a run's folder is new and this user's alone", () => {
  const state = statePaths(path.join(dir, "state"), {});
  prepareState(state);
  makeRunDir(state);
  file("state/run/left-by-a-run-that-was-killed");
  makeRunDir(state);
  expect(readdirSync(state.runDir)).toEqual([]);
  expect(statSync(state.runDir).mode & 0o777).toBe(0o700);
});

describe("assertPortFree", () => {
  test("a taken port is told; a free one is free afterwards", async () => {
    const server = net.createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as net.AddressInfo;
    await expect(assertPortFree("127.0.0.1", port, "--port")).rejects.toThrow(
      new StartError(
        `Port ${port} on 127.0.0.1 is taken. Stop what uses it, or choose another with --port.`,
      ),
    );
    await new Promise((resolve) => server.close(resolve));
    await assertPortFree("127.0.0.1", port, "--port");
    await assertPortFree("127.0.0.1", port, "--port");
  });

  test("an address that is not this machine's is told", async () => {
    await expect(assertPortFree("192.0.2.1", 8000, "--port")).rejects.toThrow(
      /192\.0\.2\.1:8000 cannot be listened on.*--address/,
    );
  });
});

describe("writeBootstrap", () => {
  const VALUES = { nodeId: "node-1", maxHeapBytes: 1_000 };

  test("fills in what it knows and leaves the rest", () => {
    const template = file(
      "template.yaml",
      "id: ${NODE_ID}\na: ${RUN_DIR}/x\nb: ${RUN_DIR}\nc: ${OTHER} $RUN_DIR\nd: ${MAX_HEAP_BYTES}",
    );
    const written = writeBootstrap(template, { ...VALUES, runDir: dir, nodeId: "node-$&-1" });
    expect(readFileSync(written, "utf8")).toBe(
      `id: node-$&-1\na: ${dir}/x\nb: ${dir}\nc: \${OTHER} $RUN_DIR\nd: 1000`,
    );
    expect(path.dirname(written)).toBe(dir);
  });

  test("nothing is left to fill in the shipped one", () => {
    const template = path.resolve(import.meta.dirname, "../../envoy/bootstrap.yaml");
    const text = readFileSync(writeBootstrap(template, { ...VALUES, runDir: dir }), "utf8");
    expect(
      text.split("\n").filter((line) => !line.trimStart().startsWith("#") && line.includes("${")),
    ).toEqual([]);
    expect(text).toContain(`${dir}/envoy-admin.sock`);
    // See docs/architecture.md: the default of 50 s has crashed Envoy.
    expect(parse(text)).toHaveProperty(
      "grpc_async_client_manager_config.max_cached_entry_idle_duration",
      "31536000s",
    );
    // The default of 30 s would be an outage after each restart of the gateway service.
    expect(parse(text)).toHaveProperty(
      "dynamic_resources.ads_config.grpc_services[0].envoy_grpc.retry_policy.retry_back_off",
      { base_interval: "0.1s", max_interval: "1s" },
    );
  });
});

describe("findCaBundle", () => {
  test("takes the one that is named, as a whole path", () => {
    const named = file("ca.crt");
    expect(findCaBundle(caBundleOf({ SVC_CA_FILE: named }), dir)).toBe(named);
    expect(
      findCaBundle(caBundleOf({ SVC_CA_FILE: path.relative(process.cwd(), named) }), dir),
    ).toBe(named);
  });

  test("one that is named and missing is an error", () => {
    expect(() => findCaBundle(caBundleOf({ SVC_CA_FILE: "/missing.crt" }), dir)).toThrow(
      /SVC_CA_FILE is \/missing\.crt.*omit it/,
    );
  });

  test("else the system's, or Node's own", () => {
    for (const env of [{}, { SVC_CA_FILE: "" }]) {
      const found = findCaBundle(caBundleOf(env), dir);
      expect(readFileSync(found, "utf8")).toContain("-----BEGIN CERTIFICATE-----");
      if (found.startsWith(dir))
        expect(readFileSync(found, "utf8").match(/BEGIN/g)).toHaveLength(
          tls.rootCertificates.length,
        );
    }
  });
});

describe("Envoy's log", () => {
  function lines(...said: string[]): { readonly logged: object[]; readonly errors: string[] } {
    const logged: object[] = [];
    const errors: string[] = [];
    const log = pino(
      { level: "trace" },
      { write: (line: string) => void logged.push(JSON.parse(line) as object) },
    );
    const line = envoyLineLogger(log, (text) => errors.push(text));
    for (const each of said) line(each);
    return { logged, errors };
  }

  test.each([
    ["trace", 20],
    ["debug", 20],
    ["info", 30],
    ["warning", 40],
    ["error", 50],
    ["critical", 50],
  ])("%s", (level, number) => {
    const { logged, errors } = lines(`${level}|main|a|b`);
    expect(logged).toMatchObject([{ level: number, process: "envoy", logger: "main", msg: "a|b" }]);
    expect(errors).toEqual(number === 50 ? ["a|b"] : []);
  });

  test("a line of another form is kept", () => {
    expect(lines("Segmentation fault").logged).toMatchObject([{ line: "Segmentation fault" }]);
    expect(lines("").logged).toHaveLength(1);
  });

  test("what is said at every start is not", () => {
    expect(
      lines(
        "warning|main|There is no configured limit to the number of allowed active " +
          "downstream connections. Configure",
        "warning|main|caught ENVOY_SIGTERM",
      ).logged,
    ).toEqual([]);
  });
});

describe("startUp, of stand-ins", () => {
  /** Serves the control API as `gateway/control.ts` does. */
  const GATEWAY = `
    const http = require("node:http");
    const options = JSON.parse(process.argv[2]);
    require("node:fs").writeFileSync(options.controlSocket + ".options", process.argv[2]);
    require("node:fs").rmSync(options.controlSocket, { force: true });
    http.createServer((request, response) => {
      const status = { ready: true, policyVersion: "1", activeCalls: 0, objects: [], problems: [], envoys: [] };
      const body = request.url === "/status" ? status : request.url.endsWith("/token") && !request.url.includes("gone") ? { token: "svcw_x" } : { error: "no Agent gone" };
      response.writeHead(body.error === undefined ? 200 : 404).end(JSON.stringify(body));
    }).listen(options.controlSocket);
    process.on("SIGTERM", () => process.exit(0));`;

  let up: Up | undefined;

  afterEach(async () => {
    await up?.stop();
    up = undefined;
  });

  async function freePort(): Promise<number> {
    const server = net.createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as net.AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }

  async function start(
    gateway: string,
    more: Partial<UpOptions> = {},
    callers: NodeJS.ProcessEnv = {},
  ): Promise<Up> {
    file("dist/gateway.js", gateway);
    mkdirSync(path.join(dir, "envoy"), { recursive: true });
    mkdirSync(path.join(dir, "resources"), { recursive: true });
    copyFileSync(
      path.resolve(import.meta.dirname, "../../envoy/bootstrap.yaml"),
      path.join(dir, "envoy/bootstrap.yaml"),
    );
    const envoy = file(
      "bin/envoy",
      '#!/bin/sh\necho "error|main|$*" >&2\nexec tail -f /dev/null\n',
      0o755,
    );
    const options: UpOptions = {
      resources: path.join(dir, "resources"),
      address: "127.0.0.1",
      port: await freePort(),
      externalPort: undefined,
      trustedProxies: [],
      mcpAllowedOrigins: [],
      mcpAllowedHosts: [],
      redisUrl: undefined,
      redisTimeoutMs: 40,
      leaseMs: 30_000,
      envoyHeapBytes: 1 << 30,
      uploadIdleMs: 15_000,
      bytesInFlight: { total: 1 << 28, perCaller: 1 << 26 },
      audit: undefined,
      envoy: undefined,
      stateDir: path.join(dir, "state"),
      pricesFile: undefined,
      guard: undefined,
      guardEndpoint: undefined,
      mockPort: undefined,
      mockScript: undefined,
      concurrency: 1,
      logLevel: "info",
      drainMs: 1_000,
      ...more,
    };
    const env = { PATH: process.env["PATH"], ENVOY_PATH: envoy, ...callers };
    return startUp(options, { root: dir, env, log: pino({ level: "silent" }) });
  }

  test("gets ready, answers, and leaves nothing behind", async () => {
    up = await start(GATEWAY);
    await up.ready();
    expect(await up.status()).toMatchObject({ ready: true });
    expect(await up.token("default", "hello")).toBe("svcw_x");
    await expect(up.token("default", "gone")).rejects.toThrow("no Agent gone");
    const options = JSON.parse(readFileSync(`${up.state.controlSocket}.options`, "utf8")) as {
      runDir: string;
      resources: string;
    };
    expect(options.resources).toBe(path.join(dir, "resources"));
    expect(readdirSync(options.runDir)).toContain("bootstrap.yaml");
    expect(up.baseUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);

    const second = start(GATEWAY, { port: await freePort() });
    await expect(second).rejects.toThrow(/Another svc up runs.*--state-dir/);

    await up.stop();
    up = undefined;
    expect(existsSync(options.runDir)).toBe(false);
  });

  describe("its guard service", () => {
    /** Writes its arguments, its environment and its pid to a file, and stays. */
    const guardProgram = () =>
      file(
        "dist/svc.js",
        `const { appendFileSync } = require("node:fs");
         const { argv, env, pid } = process;
         const told = JSON.stringify({ args: argv.slice(2), env: Object.keys(env), pid });
         appendFileSync(${JSON.stringify(path.join(dir, "guard.told"))}, told + "\\n");
         setInterval(() => undefined, 1_000);`,
      );
    const told = () =>
      existsSync(path.join(dir, "guard.told"))
        ? readFileSync(path.join(dir, "guard.told"), "utf8")
            .trim()
            .split("\n")
            .map((line) => JSON.parse(line) as { args: string[]; env: string[]; pid: number })
        : [];
    const endpointOf = (at: Up): unknown =>
      (
        JSON.parse(readFileSync(`${at.state.controlSocket}.options`, "utf8")) as {
          guardEndpoint?: string;
        }
      ).guardEndpoint;

    test("runs on a free port that the gateway knows, with its own variables alone", async () => {
      guardProgram();
      up = await start(
        GATEWAY,
        { guard: guardOf("llamaGuard", "guard-4", "https://llama.example.com/v1") },
        { SVC_GUARD_TOKEN: "t", SVC_REDIS_URL: "redis://x", NODE_OPTIONS: "--no-deprecation" },
      );
      await up.ready();
      await eventually(() => expect(told()).toHaveLength(1));
      const [first] = told();
      const args = first?.args ?? [];
      const listen = args[args.indexOf("--listen") + 1] ?? "";
      expect(listen).toMatch(/^127\.0\.0\.1:\d+$/);
      expect(args).toEqual([
        "guard",
        "--type",
        "llamaGuard",
        "--listen",
        listen,
        "--log-level",
        "silent",
        "--model",
        "guard-4",
        "--endpoint",
        "https://llama.example.com/v1",
      ]);
      expect(endpointOf(up)).toBe(`http://${listen}`);
      expect(first?.env).toEqual(["SVC_GUARD_TOKEN"]);
    });

    test("is started again, and ends with svc up", async () => {
      guardProgram();
      up = await start(GATEWAY, { guard: guardOf("stub") });
      await up.ready();
      await eventually(() => expect(told()).toHaveLength(1));
      process.kill(told()[0]?.pid ?? 0, "SIGKILL");
      await eventually(() => expect(told()).toHaveLength(2));
      const [first, second] = told();
      expect(second?.args).toEqual(first?.args);
      await up.stop();
      up = undefined;
      expect(() => process.kill(second?.pid ?? 0, 0)).toThrow("ESRCH");
    });

    test("may run elsewhere; without one the gateway knows none", async () => {
      up = await start(GATEWAY, { guardEndpoint: "http://guard:9000" });
      await up.ready();
      expect(endpointOf(up)).toBe("http://guard:9000");
      await up.stop();
      up = await start(GATEWAY);
      await up.ready();
      expect(endpointOf(up)).toBeUndefined();
      expect(told()).toEqual([]);
    });
  });

  const ipv6 = Object.values(os.networkInterfaces())
    .flat()
    .some((each) => each?.address === "::1");

  test.each([
    ["0.0.0.0", "127.0.0.1"],
    ...(ipv6
      ? [
          ["::1", "[::1]"],
          ["::", "[::1]"],
        ]
      : []),
  ] as [string, string][])("listening on %s it is called at %s", async (address, host) => {
    up = await start(GATEWAY, { address });
    await up.ready();
    expect(new URL(up.baseUrl).hostname).toBe(host);
  });

  describe("its caller's environment", () => {
    const CALLERS = {
      OPENAI_API_KEY: "sk-callers",
      NODE_OPTIONS: "--no-deprecation",
      LD_LIBRARY_PATH: "/nowhere",
      SSL_CERT_FILE: "/nowhere",
      NODE_EXTRA_CA_CERTS: "/nowhere",
      HTTPS_PROXY: "http://nowhere",
    };
    /** Also writes its environment and its input to a file. */
    const TELLING = `${GATEWAY}
      const { appendFileSync, readFileSync } = require("node:fs");
      const told = { env: Object.keys(process.env), input: readFileSync(0, "utf8") };
      appendFileSync(options.controlSocket + ".told", JSON.stringify(told) + "\\n");`;
    const told = (at: Up): { env: string[]; input: string }[] =>
      readFileSync(`${at.state.controlSocket}.told`, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as { env: string[]; input: string });

    test("reaches neither the gateway nor Envoy as theirs; the gateway looks up Secrets in it", async () => {
      up = await start(TELLING, { redisUrl: "redis://:secret@127.0.0.1:1" }, CALLERS);
      await up.ready();
      const [{ env, input } = { env: [], input: "" }] = told(up);
      expect(env).toEqual([]);
      expect(JSON.parse(input)).toMatchObject({
        ...CALLERS,
        SVC_REDIS_URL: "redis://:secret@127.0.0.1:1",
      });
      const options = readFileSync(`${up.state.controlSocket}.options`, "utf8");
      expect(options).not.toContain("secret");
      expect(options).not.toContain("sk-callers");
    });

    test("is there again for a gateway that is started again", async () => {
      up = await start(
        `${TELLING} if (!require("node:fs").existsSync(options.controlSocket + ".again")) ` +
          `{ require("node:fs").writeFileSync(options.controlSocket + ".again", ""); ` +
          "process.exit(1); }",
        {},
        CALLERS,
      );
      await up.ready();
      const all = told(up);
      expect(all).toHaveLength(2);
      expect(all[1]).toEqual(all[0]);
    });
  });

  test("a gateway that ends again and again is told, and all is stopped", async () => {
    const failing = await start("process.exit(1)");
    await expect(failing.ready()).rejects.toThrow(StartError);
  });

  test.each<[string, Partial<UpOptions>, RegExp]>([
    [
      "a script that cannot be read",
      { mockScript: "/does/not/exist.yaml" },
      /--mock-script: \/does\/not\/exist.yaml cannot be read \(ENOENT\)/,
    ],
    [
      "a script with a mistake",
      { mockScript: import.meta.filename },
      /--mock-script: .*up\.test\.ts:\d+: /,
    ],
    [
      "a folder that does not exist",
      { resources: "/does/not/exist" },
      /\/does\/not\/exist is not a folder.*--resources/,
    ],
    ["an address of another machine", { address: "192.0.2.1" }, /--address/],
    ["a guard without its upstream", { guard: guardOf("custom") }, /--guard-upstream URL/],
    ["a guard without its model", { guard: guardOf("promptGuard") }, /--guard-model DIR/],
    [
      "a guard without the name of its model",
      { guard: guardOf("llamaGuard", undefined, "http://l") },
      /--guard-model NAME/,
    ],
    ["a model of the stub", { guard: guardOf("stub", "m") }, /--guard-model has no effect/],
    [
      "an upstream of the stub",
      { guard: guardOf("stub", undefined, "http://l") },
      /--guard-upstream has no effect/,
    ],
  ])("%s is told before anything starts", async (_name, more, words) => {
    await expect(start(GATEWAY, more)).rejects.toThrow(words);
    expect(existsSync(path.join(dir, "state"))).toBe(false);
  });
});
