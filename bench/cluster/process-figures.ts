/** Memory and CPU time of a process, as the kernel has them. */
import { readdirSync, readFileSync } from "node:fs";

export function memoryOf(pid: number | undefined): string {
  const text = readFileSync(`/proc/${pid}/status`, "utf8");
  const of = (name: string): string => {
    const [, kib = "0"] = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text) ?? [];
    return `${Math.round(Number(kib) / 1_024)} MiB`;
  };
  return `RSS ${of("VmRSS")}, peak ${of("VmHWM")}`;
}

/** User and system time of a process, in seconds. */
export function cpuSecondsOf(pid: number | undefined): number {
  const [user, system] = statOf(pid).slice(11, 13);
  // In units of USER_HZ, which is 100.
  return (Number(user) + Number(system)) / 100;
}

/** The processes that a process has started. */
export function childrenOf(parent: number | undefined): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return Number(statOf(pid)[1]) === parent;
      } catch {
        // It has ended.
        return false;
      }
    });
}

/** Fields of /proc/PID/stat behind the name, which may contain spaces. */
function statOf(pid: number | undefined): readonly string[] {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  return text.slice(text.lastIndexOf(")") + 2).split(" ");
}
