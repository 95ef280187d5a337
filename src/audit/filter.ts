/** Which records `svc audit` shows. */
import { isChainType } from "./record.ts";
import type { Filter } from "./tail.ts";

export interface Selection {
  /** `<namespace>/<name>` or `ext:<key>`; undefined is all, the writers' own records too. */
  readonly workload: string | undefined;
  /** Parts of types, in any case; none is all. */
  readonly types: readonly string[];
  /** Milliseconds since the epoch. */
  readonly since: number | undefined;
}

/** A bare name is an agent of the namespace; `ns/name` and `ext:<key>` are whole. */
export function workloadOf(name: string, namespace: string): string {
  return name.includes("/") || name.startsWith("ext:") ? name : `${namespace}/${name}`;
}

export function createFilter({ workload, types, since }: Selection): Filter {
  const wanted = types.map((type) => type.trim().toLowerCase()).filter((type) => type !== "");
  return {
    // Canonical JSON has one form of it.
    holds: workload === undefined ? undefined : `"workload":${JSON.stringify(workload)}`,
    matches: ({ type, time, fields }) => {
      if (workload !== undefined && (fields["workload"] !== workload || isChainType(type)))
        return false;
      if (wanted.length > 0 && !wanted.some((part) => type.toLowerCase().includes(part)))
        return false;
      return since === undefined || Date.parse(time) >= since;
    },
  };
}
