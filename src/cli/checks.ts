/** Checks of an installation, for `svc check`. */
import { table } from "./table.ts";

export interface CheckResult {
  readonly level: "OK" | "WARN" | "FAIL";
  /** Name of the check. */
  readonly name: string;
  /** The finding, and for a warning or a failure its fix. */
  readonly message: string;
}

export const ok = (name: string, message = ""): CheckResult => ({ level: "OK", name, message });
export const warn = (name: string, message: string): CheckResult => ({
  level: "WARN",
  name,
  message,
});
export const fail = (name: string, message: string): CheckResult => ({
  level: "FAIL",
  name,
  message,
});

export function renderChecks(checks: readonly CheckResult[]): string {
  const failures = checks.filter(({ level }) => level === "FAIL").length;
  const warnings = checks.filter(({ level }) => level === "WARN").length;
  const rows = checks.map(({ level, name, message }) => [level, name, message]);
  const sum =
    failures + warnings === 0
      ? `${checks.length} checks passed.`
      : `${checks.length} checks: ${failures} failed, ${warnings} with a warning.`;
  return `${table(["", "CHECK", "RESULT"], rows)}\n${sum}`;
}
