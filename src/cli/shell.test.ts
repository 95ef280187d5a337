import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { setVariable, unsetVariable } from "./shell.ts";

const NASTY = [
  `a'b`,
  "$(touch x)",
  "`id`",
  `"; rm -rf / #`,
  "back\\slash",
  "a\nb",
  "*",
  "${HOME}",
  "''",
  "\\'",
  "!!",
];

test.each(NASTY)("sh takes %j as it is", (value) => {
  const script =
    `${setVariable("sh", "SVC_VALUE", value)}\n${unsetVariable("sh", "SVC_OTHER")}\nprintf ` +
    `%s "$SVC_VALUE" "\${SVC_OTHER-unset}"`;
  expect(execFileSync("sh", ["-c", script], { env: { SVC_OTHER: "set" }, encoding: "utf8" })).toBe(
    `${value}unset`,
  );
});

/** The shells may be missing: the forms are from their manuals. */
test("fish and PowerShell quote what would end the text", () => {
  expect(setVariable("fish", "A", "a'b\\c$d")).toBe("set -gx A 'a\\'b\\\\c$d'");
  expect(setVariable("powershell", "A", "a'b’c$d")).toBe("$Env:A = 'a''b’’c$d'");
});
