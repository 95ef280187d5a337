import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { withTemporaryFolder } from "./temporary-folder.ts";

test("is removed when the action has ended, also by an error", async () => {
  let dir = "";
  const failed = withTemporaryFolder("svc-test-", (given) => {
    dir = given;
    expect(existsSync(dir)).toBe(true);
    return Promise.reject(new Error("no"));
  });
  await expect(failed).rejects.toThrow("no");
  expect(existsSync(dir)).toBe(false);
});

test.each(["SIGINT", "SIGTERM"] as const)(
  "is removed by %s, which ends the process",
  async (signal) => {
    const module = path.join(import.meta.dirname, "temporary-folder.ts");
    const script =
      `import { withTemporaryFolder } from ${JSON.stringify(module)};` +
      `await withTemporaryFolder("svc-test-", async (dir) => { console.log(dir); ` +
      `await new Promise((resolve) => setTimeout(resolve, 60_000)); });`;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", script]);
    const [part] = (await once(child.stdout, "data")) as [Buffer];
    const dir = part.toString("utf8").trim();
    expect(existsSync(dir)).toBe(true);
    child.kill(signal);
    expect(await once(child, "exit")).toEqual([null, signal]);
    expect(existsSync(dir)).toBe(false);
  },
);

test("what was made elsewhere is undone once, the newest included, before the folder is removed", async () => {
  const undone: string[] = [];
  await withTemporaryFolder("svc-test-", async (dir, atEnd) => {
    const early = atEnd(() => Promise.resolve(void undone.push("early")));
    atEnd(async () => {
      undone.push(`late, ${existsSync(dir)}`);
      await Promise.reject(new Error("it is gone"));
    });
    atEnd(() => Promise.resolve(void undone.push("last")));
    await early();
    await early();
  });
  expect(undone).toEqual(["early", "late, true", "last"]);
});

describe("by a signal", () => {
  /** Runs an action in a process of its own, which prints the folder. */
  async function started(action: string) {
    const module = path.join(import.meta.dirname, "temporary-folder.ts");
    const script =
      `import { withTemporaryFolder } from ${JSON.stringify(module)};` +
      `const never = () => new Promise((resolve) => setTimeout(resolve, 60_000));` +
      `await withTemporaryFolder("svc-test-", async (dir, atEnd) => { ${action} });`;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", script]);
    let said = "";
    child.stdout.on("data", (part: Buffer) => (said += part.toString("utf8")));
    const printed = async (text: string): Promise<void> => {
      while (!said.includes(text)) await once(child.stdout, "data");
    };
    await printed("\n");
    const exit = once(child, "close");
    return { child, exit, printed, dir: said.split("\n")[0] ?? "", said: () => said };
  }

  test("too, and an action that fails meanwhile does not end it earlier", async () => {
    const action = `
      let fail; const failed = new Promise((_, reject) => (fail = reject));
      atEnd(async () => {
        fail(new Error("its connection is gone"));
        await new Promise((resolve) => setTimeout(resolve, 20));
        atEnd(async () => console.log("a step of a step"));
        console.log("undone");
      });
      console.log(dir);
      await Promise.race([failed, never()]);`;
    const { child, exit, dir, said } = await started(action);
    child.kill("SIGINT");
    expect(await exit).toEqual([null, "SIGINT"]);
    expect(said()).toContain("undone\na step of a step\n");
    expect(existsSync(dir)).toBe(false);
  });

  test("a second signal does not wait for a step that hangs", async () => {
    const action = `
      atEnd(async () => { console.log("hangs"); await never(); });
      console.log(dir);
      await never();`;
    const { child, exit, printed, dir } = await started(action);
    child.kill("SIGINT");
    await printed("hangs");
    child.kill("SIGTERM");
    expect(await exit).toEqual([null, "SIGTERM"]);
    expect(existsSync(dir)).toBe(false);
  });
});
