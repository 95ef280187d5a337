/**
 * Descriptors that this process inherited beyond the standard three: a child would inherit them,
 * too.
 */
import { closeSync, readdirSync, readFileSync } from "node:fs";

const STANDARD = 2;
/** In /proc's fdinfo, octal: O_CLOEXEC. Node opens all of its own descriptors with it. */
const CLOSE_ON_EXEC = 0o2000000;

/** An open folder or socket of the caller's would bypass all other isolation. */
export function closeInherited(): void {
  for (const descriptor of readdirSync("/proc/self/fd").map(Number)) {
    if (descriptor <= STANDARD || !isInherited(descriptor)) continue;
    closeSync(descriptor);
  }
}

function isInherited(descriptor: number): boolean {
  try {
    const [, flags] =
      /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8")) ?? [];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    // The descriptor with which /proc/self/fd was read.
    return false;
  }
}
