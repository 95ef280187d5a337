/** Statistics of samples, and of processes from Linux' /proc. */
import { readdirSync, readFileSync } from "node:fs";

export function percentile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  const index = Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1));
  return sorted[index] ?? Number.NaN;
}

/** Median of the numbers: a round without answers has none. */
export function median(samples: readonly number[]): number {
  const sorted = samples.filter(Number.isFinite).toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/**
 * The processes of one target: a root with all its descendants. A named descendant, with its own
 * descendants, counts under its name; the rest counts as the root's.
 */
export interface ProcessTree {
  readonly pid: number;
  readonly name: string;
  readonly named: readonly { readonly pid: number; readonly name: string }[];
  /** Other processes that work for it. */
  readonly beside?: readonly { readonly pid: number; readonly name: string }[];
}

interface ProcessStat {
  readonly parent: number;
  /** User and system time, including ended children, in seconds. */
  readonly cpu: number;
}

/** Linux shows times in units of USER_HZ, 100 on every architecture that Node runs on. */
const TICKS_PER_SECOND = 100;

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // The process ended in between.
    return undefined;
  }
}

function statOf(pid: number): ProcessStat | undefined {
  const text = readText(`/proc/${pid}/stat`);
  if (text === undefined) return undefined;
  // The name in parentheses may contain anything: fields are counted from its end, from the state
  // on (field 3).
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return { parent: Number(fields[1]), cpu: ticks / TICKS_PER_SECOND };
}

/** Each process of the tree under the name it counts for. */
function members(
  tree: ProcessTree,
): { readonly pid: number; readonly name: string; readonly cpu: number }[] {
  const stats = new Map<number, ProcessStat>();
  const children = new Map<number, number[]>();
  for (const entry of readdirSync("/proc")) {
    const pid = Number(entry);
    const stat = Number.isInteger(pid) ? statOf(pid) : undefined;
    if (stat === undefined) continue;
    stats.set(pid, stat);
    children.set(stat.parent, [...(children.get(stat.parent) ?? []), pid]);
  }
  const names = new Map(tree.named.map(({ pid, name }) => [pid, name]));
  const walk = (pid: number, name: string): { pid: number; name: string; cpu: number }[] => {
    const stat = stats.get(pid);
    if (stat === undefined) return [];
    const own = names.get(pid) ?? name;
    return [
      { pid, name: own, cpu: stat.cpu },
      ...(children.get(pid) ?? []).flatMap((child) => walk(child, own)),
    ];
  };
  return [
    walk(tree.pid, tree.name),
    ...(tree.beside ?? []).map(({ pid, name }) => walk(pid, name)),
  ].flat();
}

/** Processes below `pid` whose command line contains `part`. */
export function findDescendant(pid: number, part: string): number | undefined {
  return members({ pid, name: "", named: [] }).find(
    (member) =>
      member.pid !== pid && readText(`/proc/${member.pid}/cmdline`)?.includes(part) === true,
  )?.pid;
}

/** CPU seconds so far, by name. */
export function cpuSeconds(tree: ProcessTree): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const { name, cpu } of members(tree)) sums[name] = (sums[name] ?? 0) + cpu;
  return sums;
}

/**
 * CPU seconds of the whole machine since it started: all that was not idle, with what the
 * hypervisor took away.
 */
export function machineBusySeconds(): number {
  const fields =
    (readText("/proc/stat") ?? "").split("\n", 1)[0]?.split(/\s+/).slice(1, 9).map(Number) ?? [];
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields;
  return (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND;
}

/** Resident memory, MiB: current (`VmRSS`), or the maximum of each process (`VmHWM`). */
export function residentMiB(tree: ProcessTree, field: "VmRSS" | "VmHWM"): number {
  let sum = 0;
  for (const { pid } of members(tree)) {
    const line = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(
      readText(`/proc/${pid}/status`) ?? "",
    );
    sum += Number(line?.[1] ?? 0) / 1024;
  }
  return sum;
}
