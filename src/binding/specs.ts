/**
 * The file of resolved providers: read at the start, and watched. If the file is invalid, the last
 * good one stays in force.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { explainIssues } from "../resources/explain.ts";
import { formatPath } from "../resources/problem.ts";
import { type BindingSpecs, bindingSpecsSchema } from "../resources/binding-spec.ts";
import type { Clock } from "../platform/clock.ts";
import { WatchedFile } from "../platform/watched-file.ts";

export interface LoadedSpecs {
  readonly version: string;
  readonly specs: BindingSpecs;
}

/** @throws Error that states the problem and its place */
export async function loadSpecs(file: string): Promise<LoadedSpecs> {
  return parseSpecs(file, await readFile(file, "utf8"));
}

function parseSpecs(file: string, text: string): LoadedSpecs {
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
      `${file}: ` +
        (first === undefined ? "does not fit" : `${formatPath(first.path)}: ${first.message}`),
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

export function watchSpecs(options: SpecsWatchOptions): Promise<WatchedFile> {
  const { file, clock, pollMs, onChange, onBroken } = options;
  let version = "";
  const onText = (text: string | undefined): void => {
    let loaded: LoadedSpecs;
    try {
      if (text === undefined) throw new Error(`${file}: does not exist`);
      loaded = parseSpecs(file, text);
    } catch (error) {
      return onBroken(error as Error);
    }
    if (loaded.version === version) return;
    version = loaded.version;
    onChange(loaded);
  };
  return WatchedFile.open({ file, clock, intervalMs: pollMs, onText, onError: onBroken });
}
