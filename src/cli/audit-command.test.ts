import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { Command, CommanderError } from "commander";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { append, AuditWorld } from "../audit/testing.ts";
import { auditCommand } from "./audit-command.ts";
import type { AuditSession } from "./audit-session.ts";
import type { ClusterAccess } from "./cluster-access.ts";
import { CliError } from "./errors.ts";

let world: AuditWorld;
/** The pods and claims of a cluster, and the folders whose chains they have. */
let pods: Readonly<Record<string, string | undefined>> = {};
const copied: { readonly dir: string; readonly workload: string | undefined }[] = [];
const cluster: ClusterAccess = {
  check: () => Promise.resolve([]),
  copyChains: (dir, workload) => {
    copied.push({ dir, workload });
    return Promise.resolve(
      Object.entries(pods).map(([place, from], i) => {
        const target = path.join(dir, String(i));
        if (from !== undefined) cpSync(from, target, { recursive: true });
        return { place, dir: target, problem: from === undefined ? "it is gone" : undefined };
      }),
    );
  },
};
beforeEach(() => {
  world = new AuditWorld();
});
afterEach(() => world.remove());

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** In the same way as the program runs it. */
async function run(args: readonly string[], session?: AuditSession): Promise<Ran> {
  let [code, stdout, stderr] = [0, "", ""];
  const out = (text: string): void => void (stdout += text);
  const context = {
    env: { SVC_STATE_DIR: world.root },
    stdout: out,
    stderr: (text: string): void => void (stderr += text),
    setExitCode: (wanted: number): void => void (code = wanted),
    now: () => world.clock.now(),
    cluster: () => Promise.resolve(cluster),
  };
  const once: AuditSession = {
    wait: () => Promise.resolve(false),
    turn: () => Promise.resolve(true),
    end: () => undefined,
  };
  const program = new Command("svc");
  program.addCommand(auditCommand(context, () => session ?? once));
  const audit = program.commands[0] as Command;
  for (const command of [program, audit, ...audit.commands])
    command.exitOverride().configureOutput({ writeOut: out, writeErr: context.stderr });
  try {
    await program.parseAsync(["audit", ...args], { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) code = error.exitCode === 0 ? 0 : 2;
    else if (error instanceof CliError) [code, stderr] = [error.exitCode, stderr + error.message];
    else throw error;
  }
  return { code, stdout, stderr };
}

interface Said {
  readonly type?: string;
  readonly workload?: string;
  readonly [key: string]: string | number | undefined;
}

/** A minute passes after each. */
async function write(writer: string, ...said: readonly Said[]): Promise<void> {
  const opened = await world.open({ writer });
  for (const { type = "LLM_CALL", workload = "default/hello", ...fields } of said) {
    await append(opened, { type, fields: { ...fields, workload } });
    world.clock.advance(60_000);
  }
  await opened.close();
}

const lines = (text: string): string[] =>
  text
    .trimEnd()
    .split("\n")
    .filter((line) => line !== "");
const field = (text: string, name: string): unknown[] =>
  lines(text).map((line) => (JSON.parse(line) as { fields: Record<string, unknown> }).fields[name]);
const SOME = [
  { n: 1 },
  { n: 2, workload: "team/hello" },
  { n: 3, workload: "ext:ci" },
  { n: 4, type: "GUARD.VIOLATION_AUDIT" },
  { n: 5, workload: "default/hello-2" },
];

describe("svc audit", () => {
  test.each([
    ["a bare name", ["hello"], [1, 4]],
    ["another namespace", ["hello", "-n", "team"], [2]],
    ["a whole name", ["team/hello"], [2]],
    ["an access key", ["ext:ci"], [3]],
    ["types by parts, in any case", ["--type", "guard, tool"], [4]],
    ["several types", ["--type", "llm,violation"], [1, 2, 3, 4, 5]],
    ["what is newer, as a duration", ["--since", "2m"], [4, 5]],
    ["what is newer, as a time", ["--since", "2026-01-31T13:03:00+01:00", "--type", "llm"], [5]],
    ["all of them", ["hello", "--since", "1h", "--type", "violation"], [4]],
  ])("%s", async (_name, args, numbers) => {
    await write("gw", ...SOME);
    const { code, stdout } = await run([...args, "-o", "json"]);
    expect(code).toBe(0);
    expect(field(stdout, "n").filter((n) => n !== undefined)).toEqual(numbers);
  });

  test("without an agent everything, the chain's own records too; a line is as it stands in the file", async () => {
    await write("gw", { n: 1 });
    const { stdout } = await run(["-o", "json"]);
    expect(stdout).toBe(readFileSync(world.path("000001.jsonl"), "utf8"));
  });

  test("several writers are one log, by time; within one its own order stands", async () => {
    const [a, b] = [await world.open({ writer: "a" }), await world.open({ writer: "b" })];
    for (let n = 0; n < 6; n++) {
      await append(n % 2 === 0 ? a : b, {
        type: "LLM_CALL",
        fields: { workload: "default/hello", n },
      });
      world.clock.advance(1000);
    }
    world.clock.step(-3_600_000);
    await append(a, { type: "LLM_CALL", fields: { workload: "default/hello", n: 6 } });
    await a.close();
    await b.close();
    expect(field((await run(["hello", "-o", "json"])).stdout, "n")).toEqual([0, 1, 2, 3, 4, 6, 5]);
  });

  test("tables", async () => {
    await write("gw", { n: 1, model: "echo", text: "two words" });
    expect(lines((await run(["hello"])).stdout)).toEqual([
      "TIME                      TYPE                     WORKLOAD                      DETAILS",
      "2026-01-31T12:00:00.000Z  LLM_CALL                 default/hello                 " +
        'model=echo n=1 text="two words"',
    ]);
    expect(lines((await run(["hello", "-o", "wide"])).stdout)[1]).toBe(
      "2026-01-31T12:00:00.000Z  LLM_CALL                 default/hello                 gw " +
        ' 3  model=echo n=1 text="two words"',
    );
  });

  test("nothing in a record steers the terminal", async () => {
    await write("gw", {
      model: "\u001B[2J\u009B\u202Ex\r\n\u007F",
      workload: "ext:\u001B]0;x\u0007",
      type: "A\nB",
    });
    const { stdout } = await run(["-o", "wide"]);
    expect(stdout.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(lines(stdout)).toHaveLength(5);
  });

  test("long details end, wide ones do not", async () => {
    await write("gw", { text: "x".repeat(500) });
    expect(lines((await run(["hello"])).stdout)[1]?.endsWith("…")).toBe(true);
    expect((await run(["hello", "-o", "wide"])).stdout).toContain("x".repeat(500));
  });

  test("older segments are not opened for --since; what is no record is said", async () => {
    const writer = await world.open({ segmentBytes: 3000 });
    for (let n = 0; n < 40; n++) {
      await append(writer, { type: "LLM_CALL", fields: { workload: "default/hello", n } });
      world.clock.advance(600_000);
    }
    await writer.close();
    const all = field((await run(["hello", "-o", "json"])).stdout, "n");
    expect(all).toHaveLength(40);
    writeFileSync(world.path("000001.jsonl"), '"workload":"default/hello"\n');
    const some = await run(["hello", "-o", "json", "--since", "65m"]);
    expect(field(some.stdout, "n")).toEqual([34, 35, 36, 37, 38, 39]);
    expect(some.stderr).toBe("");
    expect((await run(["hello", "-o", "json"])).stderr).toContain(
      "1 lines are not records. Look with: svc audit verify",
    );
  });

  test("--follow goes on over new segments and new writers, until it is over", async () => {
    const writer = await world.open({ segmentBytes: 3000 });
    const rounds = [
      async () => {
        for (let n = 0; n < 20; n++)
          await append(writer, { type: "LLM_CALL", fields: { workload: "default/hello", n } });
      },
      () => write("other", { n: 20 }),
      async () => {
        await append(writer, { type: "LLM_CALL", fields: { workload: "default/hello", n: 21 } });
        appendFileSync(world.path("000003.jsonl"), "{half a line");
      },
    ];
    let ended = 0;
    const session: AuditSession = {
      wait: async () => {
        await rounds.shift()?.();
        return rounds.length >= 0 && ended++ < 4;
      },
      turn: () => Promise.resolve(true),
      end: () => (ended += 100),
    };
    const { code, stdout } = await run(["hello", "--follow", "-o", "json"], session);
    expect(code).toBe(0);
    expect(field(stdout, "n")).toEqual(Array.from({ length: 22 }, (_, n) => n));
    expect(ended).toBe(105);
    await writer.close();
  });

  test("stops when its reader has left", async () => {
    await write("gw", ...Array.from({ length: 40 }, (_, n) => ({ n, pad: "x".repeat(10_000) })));
    const gone: AuditSession = {
      wait: () => Promise.resolve(false),
      turn: () => Promise.resolve(false),
      end: () => undefined,
    };
    const { code, stdout } = await run(["hello", "-o", "json"], gone);
    expect(code).toBe(0);
    expect(lines(stdout).length).toBeLessThan(10);
  });

  test.each([
    ["no folder", [], 1, "cannot be read (ENOENT). Name another with --audit-dir"],
    [
      "--since that is nothing",
      ["--since", "yesterday"],
      2,
      '--since "yesterday" is neither a duration',
    ],
    ["--since a date alone", ["--since", "2026-01-31"], 2, "is neither"],
    ["a format that is none", ["-o", "yaml"], 2, "Allowed choices are table, wide, json"],
    ["too many names", ["a", "b"], 2, "too many arguments"],
  ])("%s", async (_name, args, code, message) => {
    expect(await run(args)).toMatchObject({ code, stderr: expect.stringContaining(message) });
  });

  test("a folder without a chain", async () => {
    mkdirSync(world.dir);
    expect(await run([])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("There is no audit chain in"),
    });
    expect(await run(["verify"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("There is no audit chain in"),
    });
  });
});

describe("svc audit verify", () => {
  test("good, by folder of chains, of one, and by flag", async () => {
    await write("gw", { n: 1 });
    await write("other", { n: 1 });
    const nowhere = path.join(world.root, "nowhere");
    for (const args of [
      [],
      [world.dir],
      ["--audit-dir", world.dir, "--state-dir", nowhere],
      ["--state-dir", world.root],
    ]) {
      const { code, stdout } = await run(["verify", ...args]);
      expect(code).toBe(0);
      expect(stdout).toContain(
        "gw: good (closed and signed)\n  records         1 to 4, in 1 segment\n",
      );
      expect(stdout).toContain("other: good");
      expect(stdout).toContain("from the chain's own folder");
    }
    expect(await run(["verify", "--audit-dir", nowhere])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(nowhere),
    });
    const one = await run(["verify", world.path("."), "--public-key", world.path("audit.pub")]);
    expect(one).toMatchObject({ code: 0 });
    expect(one.stdout).not.toContain("own folder");
  });

  test("bad: exit code 1, and where", async () => {
    await write("gw", { n: 1 });
    await write("other", { n: 1 });
    writeFileSync(
      world.path("000001.jsonl"),
      readFileSync(world.path("000001.jsonl"), "utf8").replace('"n":1', '"n":2'),
    );
    const { code, stdout } = await run(["verify"]);
    expect(code).toBe(1);
    expect(stdout).toContain(
      "gw: BAD\n  000001.jsonl, line 3, record 3: its content does not match its hash: it " +
        "was edited.\n  The 2 records before it are consistent; the last signed one is 2.\n",
    );
    expect(stdout).toContain("other: good");
    const json = JSON.parse((await run(["verify", "-o", "json"])).stdout) as {
      good: boolean;
      chains: { fault?: unknown }[];
    };
    expect(json.good).toBe(false);
    expect(json.chains[0]?.fault).toMatchObject({
      place: { file: "000001.jsonl", line: 3, seq: 3 },
    });
    rmSync(world.path("audit.pub"));
    expect(await run(["verify"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("The public key"),
    });
  });

  test("witnesses: one, a file of them, the service's log; a chain that is gone", async () => {
    await write("gw", { n: 1 });
    const last = world.records().at(-1);
    const file = path.join(world.root, "witness");
    const log = path.join(world.root, "log");
    writeFileSync(file, `gw:${last?.seq}:${last?.hash}\n`);
    writeFileSync(
      log,
      `${world.logged.map((line) => JSON.stringify(line)).join("\n")}\nnot JSON, audit ` +
        "checkpoint\n",
    );
    for (const witness of [`${last?.seq}:${last?.hash}`, file, log]) {
      expect(await run(["verify", "--witness", witness])).toMatchObject({ code: 0 });
    }
    expect((await run(["verify", "--witness", `99:${last?.hash}`])).stdout).toContain(
      "truncated to record 4",
    );
    rmSync(world.dir, { recursive: true });
    await write("other", { n: 1 });
    const gone = await run(["verify", "--witness", log]);
    expect(gone).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("gw: BAD\n  A witness has a record of the chain"),
    });
  });

  test.each([
    [
      "a witness that is nothing",
      ["--witness", "x"],
      1,
      "neither [<writer>:]<seq>:<hash> nor a file",
    ],
    ["a witness file without one", ["--witness", "EMPTY"], 1, "contains no line"],
    ["a key that is none", ["--public-key", "EMPTY"], 1, "is not a public key in PEM form"],
    ["a flag of reading", ["--since", "2h"], 2, "svc audit verify has no flag --since"],
    ["a format of reading", ["-o", "wide"], 2, "prints table or json"],
    ["a checkpoint that is none", ["--from-checkpoint", "x"], 2, "expected a record's number"],
    ["a count that is none", ["--max-unsigned", "-1"], 2, "expected a whole number"],
    [
      "a witness that could be of either chain",
      ["--witness", `1:${"0".repeat(64)}`],
      2,
      "There are 2 chains",
    ],
  ])("%s", async (_name, args, code, message) => {
    await write("a", {});
    await write("b", {});
    const empty = path.join(world.root, "empty");
    writeFileSync(empty, "\n");
    expect(
      await run(["verify", ...args.map((arg) => (arg === "EMPTY" ? empty : arg))]),
    ).toMatchObject({ code, stderr: expect.stringContaining(message) });
  });
});

describe("a cluster", () => {
  const target = ["--context", "prod"];

  beforeEach(async () => {
    copied.length = 0;
    await write("gw-1", ...SOME);
  });

  test("the chains of all places are shown together, and the copies are removed", async () => {
    pods = { "pod svc-system/gw-1": world.dir, "claim team/a": world.dir };
    const one = await run(["--type", "llm", "-o", "json"]);
    const both = await run(["--type", "llm", "-o", "json", ...target]);
    expect(lines(both.stdout)).toEqual(lines(one.stdout).flatMap((line) => [line, line]));
    expect([both.code, both.stderr]).toEqual([
      0,
      "Read the audit chains of 2 of 2 pods and claims.\n",
    ]);
    expect(copied.map(({ dir }) => existsSync(dir))).toEqual([false]);
  });

  test("only the chains of the named agent are asked for", async () => {
    pods = { "pod svc-system/gw-1": world.dir };
    await run(["hello", "-n", "team", ...target]);
    await run(target);
    expect(copied.map(({ workload }) => workload)).toEqual(["team/hello", undefined]);
  });

  test("a place that was not read is named, and fails the command", async () => {
    pods = { "pod svc-system/gw-1": world.dir, "claim team/a": undefined };
    const { code, stderr } = await run(["verify", ...target]);
    expect(stderr).toContain("svc: the chains of claim team/a were not read: it is gone\n");
    expect(code).toBe(1);
    pods = { "pod svc-system/gw-1": world.dir };
    expect((await run(["verify", ...target])).code).toBe(0);
  });

  test("without a chain", async () => {
    pods = {};
    expect((await run(target)).stderr).toContain(
      "There is no audit chain in the pods and claims of the cluster.",
    );
  });

  test("cannot be followed", async () => {
    expect((await run(["--follow", ...target])).code).toBe(2);
  });
});
