import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
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
