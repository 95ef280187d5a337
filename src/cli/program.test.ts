import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type http from "node:http";
import os from "node:os";
import path from "node:path";
import { type Command, CommanderError } from "commander";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createControl } from "../gateway/control.ts";
import type { GatewayStatus } from "../gateway/status.ts";
import { StartError } from "../up/errors.ts";
import { createProgram } from "./program.ts";

const READY: GatewayStatus = {
  ready: true,
  reason: undefined,
  policyVersion: "1",
  activeCalls: 0,
  objects: [{ kind: "Agent", namespace: "default", name: "hello", ready: true, reason: "Ready", message: "" }],
  problems: [],
  envoys: [],
};

interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly error: unknown;
}

/** The program with its subcommands; none ends the process. */
function program(said: (text: string) => void): Command {
  const root = createProgram("/nowhere", "1.2.3");
  for (const command of [root, ...root.commands]) command.exitOverride().configureOutput({ writeErr: said, writeOut: said });
  return root;
}

async function run(...args: string[]): Promise<Outcome> {
  const stdout: string[] = [];
  const stderr: string[] = [];
  const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    stdout.push(String(text));
    return true;
  });
  try {
    await program((text) => stderr.push(text)).parseAsync(args, { from: "user" });
    return { stdout: stdout.join(""), stderr: stderr.join(""), error: undefined };
  } catch (error) {
    return { stdout: stdout.join(""), stderr: stderr.join(""), error };
  } finally {
    write.mockRestore();
  }
}

let dir: string;
let control: http.Server | undefined;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
});

afterEach(() => {
  control?.close();
  control?.closeAllConnections();
  control = undefined;
  process.exitCode = undefined;
  rmSync(dir, { recursive: true });
});

async function running(status: GatewayStatus): Promise<void> {
  const server = createControl({ status: () => status, tokenOf: (namespace, name) => `svcw_${namespace}_${name}` });
  control = server;
  await new Promise<void>((resolve) => server.listen(path.join(dir, "svc.sock"), resolve));
}

describe("flags that are wrong: one clear line, exit code 1", () => {
  test.each([
    [["up", "--port", "x"], "error: option '--port <number>' argument 'x' is invalid. a port is a number from 1 to 65535"],
    [["up", "--port", "0"], "a port is a number from 1 to 65535"],
    [["up", "--port", "65536"], "a port is a number from 1 to 65535"],
    [["up", "--port", "80.5"], "a port is a number from 1 to 65535"],
    [["up", "--port", ""], "a port is a number from 1 to 65535"],
    [["up", "--concurrency", "0"], "a whole number above 0 is wanted"],
    [["up", "--drain", "soon"], "a whole number above 0 is wanted"],
    [["up", "--log-level", "loud"], "Allowed choices are debug, info, warn, error."],
    [["up", "--nothing"], "error: unknown option '--nothing'"],
    [["up", "--port"], "error: option '--port <number>' argument missing"],
    [["up", "folder"], "error: too many arguments for 'up'"],
    [["status", "-o", "xml"], "Allowed choices are table, json."],
    [["status", "--nothing"], "error: unknown option '--nothing'"],
    [["token"], "error: missing required argument 'agent'"],
    [["token", "a", "b"], "error: too many arguments for 'token'"],
    [["tokne"], "error: unknown command 'tokne'"],
  ])("svc %j", async (args, words) => {
    const { stdout, stderr, error } = await run(...args);
    expect(stdout).toBe("");
    expect(stderr).toContain(words);
    expect(stderr.trimEnd().split("\n").filter((line) => !line.startsWith("(Did you mean"))).toHaveLength(1);
    expect(error).toBeInstanceOf(CommanderError);
    expect((error as CommanderError).exitCode).toBe(1);
  });

  test("a folder that does not exist is told in one line", async () => {
    const { error } = await run("up", "--resources", path.join(dir, "none"));
    expect(error).toBeInstanceOf(StartError);
    expect((error as StartError).message).toMatch(/^[^\n]*none is not a folder[^\n]*--resources DIR\.$/);
  });
});

describe("asking what does not run", () => {
  test.each([[["status"]], [["token", "hello"]]])("svc %j", async (args) => {
    const { error } = await run(...args, "--state-dir", dir);
    expect(error).toBeInstanceOf(StartError);
    expect((error as StartError).message).toBe(`No svc up runs with the state folder ${dir}. Start one, or name its folder with --state-dir.`);
  });
});

describe("svc token", () => {
  test("prints the token alone", async () => {
    await running(READY);
    expect((await run("token", "hello", "--state-dir", dir)).stdout).toBe("svcw_default_hello\n");
  });

  test.each([[["other"]], [["hello", "-n", "elsewhere"]], [["../../status"]]])("%j is none", async (args) => {
    await running(READY);
    const { stdout, error } = await run("token", ...args, "--state-dir", dir);
    expect(stdout).toBe("");
    expect(error).toBeInstanceOf(StartError);
    expect((error as StartError).message).toMatch(/^no Agent \S+ in namespace \S+\.$/);
  });
});

describe("svc status", () => {
  test("prints a table, or the whole as JSON", async () => {
    await running(READY);
    expect((await run("status", "--state-dir", dir)).stdout).toContain("Agent  default/hello  yes    Ready");
    expect(process.exitCode).toBe(0);
    expect(JSON.parse((await run("status", "-o", "json", "--state-dir", dir)).stdout)).toEqual(JSON.parse(JSON.stringify(READY)));
  });

  test.each([
    ["is not ready", { ...READY, ready: false, reason: "Envoy has not taken the configuration yet" }],
    ["has problems", { ...READY, problems: ["a.yaml: bad"] }],
  ])("says by its exit code that the gateway %s", async (_name, status) => {
    await running(status);
    expect((await run("status", "--state-dir", dir)).error).toBeUndefined();
    expect(process.exitCode).toBe(1);
  });
});

test("--version prints the version", async () => {
  const { stderr, error } = await run("--version");
  expect(stderr).toBe("1.2.3\n");
  expect((error as CommanderError).exitCode).toBe(0);
});

describe("docs/cli.md", () => {
  const page = readFileSync(path.resolve(import.meta.dirname, "../../docs/cli.md"), "utf8");
  const sections = new Map(page.split(/^## /m).slice(1).map((text) => [text.split("\n")[0]?.replaceAll("`", "") ?? "", text]));
  const root = createProgram("/nowhere", "1.2.3");

  test("has a section for each command, and no other", () => {
    const usages = root.commands.map((command) => ["svc", command.name(), ...command.registeredArguments.map((argument) => `<${argument.name()}>`)].join(" "));
    expect([...sections.keys()].filter((title) => title.startsWith("svc "))).toEqual(usages);
  });

  test.each(root.commands.map((command) => [command.name(), command] as const))("has the flags of svc %s, with what they mean and their defaults", (name, command) => {
    const section = [...sections].find(([title]) => title.split(" ")[1] === name)?.[1] ?? "";
    expect(section).toContain(command.description());
    const rows = [...section.matchAll(/^\| `(.+?)` \| (.+?) \| (.*?) \|$/gm)].map((match) => match.slice(1));
    expect(rows).toEqual(
      command.options.map((option) => {
        const choices = option.argChoices === undefined ? "" : `: ${option.argChoices.map((choice) => `\`${choice}\``).join(", ")}`;
        const fallback = option.defaultValue === undefined ? "" : `\`${String(option.defaultValue)}\``;
        return [option.flags, option.description + choices, fallback];
      }),
    );
  });
});
