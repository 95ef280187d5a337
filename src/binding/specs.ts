/**
 * The file of resolved providers: read at the start, and again when its modification time changes.
 * The kubelet replaces a mounted ConfigMap through a symbolic link, which changes the time too. If
 * the file is invalid, the last good one stays in force.
 */
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { explainIssues } from "../resources/explain.ts";
import { formatPath } from "../resources/problem.ts";
import { type BindingSpecs, bindingSpecsSchema } from "../resources/binding-spec.ts";
import type { Clock } from "../platform/clock.ts";

export interface LoadedSpecs {
  readonly version: string;
  readonly specs: BindingSpecs;
}

/** @throws Error that states the problem and its place */
export async function loadSpecs(file: string): Promise<LoadedSpecs> {
  const text = await readFile(file, "utf8");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(`${file}: is not JSON`);
  }
  const parsed = bindingSpecsSchema.safeParse(value);
  if (!parsed.success) {
    const [first] = explainIssues(parsed.error.issues, value, bindingSpecsSchema);
    throw new Error(
      `${file}: ${first === undefined ? "does not fit" : `${formatPath(first.path)}: ${first.message}`}`,
    );
  }
  return {
    version: createHash("sha256").update(text).digest("hex").slice(0, 16),
    specs: parsed.data,
  };
}

export interface SpecsWatchOptions {
  readonly file: string;
  readonly clock: Clock;
  /** Interval in milliseconds. */
  readonly pollMs: number;
  readonly onChange: (loaded: LoadedSpecs) => void;
  /** Called once for each version of the file that cannot be used. */
  readonly onBroken: (error: Error) => void;
}

export function watchSpecs({ file, clock, pollMs, onChange, onBroken }: SpecsWatchOptions): {
  close(): void;
} {
  let last = "";
  let version = "";
  let closed = false;
  let cancel = (): void => undefined;
  const look = async (): Promise<void> => {
    const stamp = await stampOf(file);
    if (stamp === last) return;
    last = stamp;
    try {
      const loaded = await loadSpecs(file);
      if (closed || loaded.version === version) return;
      version = loaded.version;
      onChange(loaded);
    } catch (error) {
      if (!closed) onBroken(error as Error);
    }
  };
  const later = (): void => {
    if (closed) return;
    cancel = clock.after(pollMs, () => void look().finally(later));
  };
  void look().finally(later);
  return {
    close: () => {
      closed = true;
      cancel();
    },
  };
}

async function stampOf(file: string): Promise<string> {
  try {
    const { mtimeNs, ino, size } = await stat(file, { bigint: true });
    return `${mtimeNs}:${ino}:${size}`;
  } catch {
    return "missing";
  }
}
