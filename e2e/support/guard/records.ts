/** What a gateway has recorded and counted about its guards. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import type { Metrics, Stack } from "../stack.ts";

/** A record of the audit chain. */
export interface AuditRecord {
  readonly type: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** All records of a gateway, in the order of the chain. */
export function recordsOf({ stateDir }: Pick<Stack, "stateDir">): readonly AuditRecord[] {
  const dir = path.join(stateDir, "audit/gateway");
  return readdirSync(dir)
    .filter((name) => /^\d+\.jsonl$/.test(name))
    .sort()
    .flatMap((name) => readFileSync(path.join(dir, name), "utf8").split("\n").slice(0, -1))
    .map((line) => JSON.parse(line) as AuditRecord);
}

/** The records of guards. */
export function guardRecords(stack: Pick<Stack, "stateDir">): readonly AuditRecord[] {
  return recordsOf(stack).filter(({ type }) => type.startsWith("GUARD."));
}

/** Checks by `<workload> <label> <action>`. */
export type Checks = Readonly<Record<string, number>>;

export function checksOf({ text }: Metrics): Checks {
  const checks: Record<string, number> = {};
  for (const [, labels = "", count] of text.matchAll(/^svc_guard_checks_total\{(.*)\} (\d+)$/gm)) {
    const label = (name: string): string => new RegExp(`${name}="([^"]*)"`).exec(labels)?.[1] ?? "";
    checks[`${label("workload")} ${label("label")} ${label("action")}`] = Number(count);
  }
  return checks;
}

/** Returns what has been added. */
export function added(before: Checks, after: Checks): Checks {
  return Object.fromEntries(
    Object.entries(after).flatMap(([key, count]) => {
      const more = count - (before[key] ?? 0);
      return more === 0 ? [] : [[key, more]];
    }),
  );
}

/** Returns the number of checks. */
export function total(checks: Checks): number {
  return Object.values(checks).reduce((sum, count) => sum + count, 0);
}
