/** Selects the records that `svc audit` shows. */
import { type AuditRecord, isChainType } from "../chain/record.ts";
import { REFUSALS_LEFT_OUT } from "../refusals/refusals.ts";
import type { Filter } from "./tail.ts";

export interface Selection {
  /**
   * `<namespace>/<name>` or `ext:<key>`; undefined selects all, including the writers' own records.
   */
  readonly workload: string | undefined;
  /** Parts of types, in any case; an empty list selects all. */
  readonly types: readonly string[];
  /** Milliseconds since the epoch. */
  readonly since: number | undefined;
}

/**
 * Returns the workload of a name: a bare name is an agent of the namespace; `ns/name` and
 * `ext:<key>` are complete.
 */
export function workloadOf(name: string, namespace: string): string {
  return name.includes("/") || name.startsWith("ext:") ? name : `${namespace}/${name}`;
}

export function createFilter({ workload, types, since }: Selection): Filter {
  const wanted = types.map((type) => type.trim().toLowerCase()).filter((type) => type !== "");
  return {
    // Canonical JSON has exactly one form for each member.
    holds:
      workload === undefined
        ? []
        : [`"workload":${JSON.stringify(workload)}`, `"type":"${REFUSALS_LEFT_OUT}"`],
    matches: (record) => {
      const { type, time } = record;
      if (workload !== undefined && !isOf(workload, record)) return false;
      if (wanted.length > 0 && !wanted.some((part) => type.toLowerCase().includes(part)))
        return false;
      return since === undefined || Date.parse(time) >= since;
    },
  };
}

function isOf(workload: string, { type, fields }: AuditRecord): boolean {
  if (isChainType(type)) return false;
  if (type !== REFUSALS_LEFT_OUT) return fields["workload"] === workload;
  const { callers } = fields;
  if (typeof callers !== "object" || callers === null) return false;
  return Object.keys(callers).some((caller) => isCaller(workload, caller));
}

/** The workload of an access key is `ext:<name>`, its caller `ext:<namespace>/<name>`. */
function isCaller(workload: string, caller: string): boolean {
  if (caller === workload) return true;
  if (!workload.startsWith("ext:") || !caller.startsWith("ext:")) return false;
  return caller.endsWith(`/${workload.slice("ext:".length)}`);
}
