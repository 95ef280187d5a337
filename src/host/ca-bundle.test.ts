import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { joinBundles } from "./ca-bundle.ts";
import { StartError } from "./errors.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "svc-roots-"));
});

afterEach(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const whole = path.join(folder, name);
  writeFileSync(whole, text);
  return whole;
}

test("bundles are joined, each on lines of its own", () => {
  const joined = joinBundles([file("a.pem", "A"), file("b.pem", "B")], folder);
  expect(readFileSync(joined, "utf8")).toBe("A\nB");
});

test("a bundle that is not mounted is named", () => {
  const gone = path.join(folder, "ca.crt");
  expect(() => joinBundles([gone], folder)).toThrow(
    new StartError(`${gone} cannot be read (ENOENT). Mount the certificates there.`),
  );
});
