import { spawnSync } from "node:child_process";
import path from "node:path";
import { expect, test } from "vitest";

/** Runs `body` in a separate process, because the log goes to standard error. */
function run(body: string): { readonly stdout: string; readonly stderr: string } {
  const module = path.join(import.meta.dirname, "log.ts");
  const node = path.resolve(import.meta.dirname, "../../node_modules/.bin/node");
  const source = `const { createLog } = await import(${JSON.stringify(module)}); ${body}`;
  const { stdout, stderr } = spawnSync(
    node,
    ["--no-warnings", "--input-type=module", "--eval", source],
    { encoding: "utf8" },
  );
  return { stdout, stderr };
}

test("one JSON object a line, on standard error; nothing is lost at an exit", () => {
  const { stdout, stderr } = run(`
    const log = createLog({ level: "info", name: "svc" });
    for (let i = 0; i < 200; i++) log.info({ i }, "line");
    log.debug("below the level");
    process.exit(0);`);
  const lines = stderr
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(stdout).toBe("");
  // Lines flushed at exit may overtake a pending write: all lines are present, in any order.
  expect(lines.map((line) => Number(line["i"])).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 200 }, (_, i) => i),
  );
  expect(lines.find((line) => line["i"] === 0)).toMatchObject({
    level: 30,
    name: "svc",
    msg: "line",
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as unknown,
  });
});

test("no text makes a line long, wherever it stands; other values are left as they are", () => {
  const { stderr } = run(`
    const log = createLog({ level: "info", name: "svc" }).child({ process: "x" });
    const long = "\\u0000".repeat(1_000_000);
    log.warn({ long, n: 1, list: [long, { long }], short: "a\\nb", none: undefined }, long);
    log.info({ err: new Error("as before") }, "an error");
    log.info(long);
    log.info({ many: Array.from({ length: 100_000 }, () => "x".repeat(100)) }, "many");
    process.exit(0);`);
  const lines = stderr.trimEnd().split("\n");
  expect(lines).toHaveLength(4);
  for (const line of lines) expect(line.length).toBeLessThan(60_000);
  const [first, second] = lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .sort((a, b) => Number(b["level"]) - Number(a["level"]));
  expect(first).toMatchObject({ n: 1, short: "a\nb", process: "x" });
  for (const text of [first?.["long"], first?.["msg"]])
    expect(text).toMatch(/^(?:\\u\{0\})+…sha256:[0-9a-f]{32}$/);
  expect(second?.["err"]).toMatchObject({ type: "Error", message: "as before" });
});
