/**
 * Golden files: the output that an input must have. With `UPDATE_GOLDEN=1` (`make golden`) they are
 * written anew, and those without a case are deleted.
 */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect } from "vitest";

export const UPDATING_GOLDENS = process.env["UPDATE_GOLDEN"] === "1";

export class Goldens {
  readonly #folder: string;
  readonly #made = new Set<string>();

  /** @param folder absolute path */
  constructor(folder: string) {
    this.#folder = resolve(folder);
  }

  check(file: string, content: string): void {
    this.#made.add(file);
    const path = join(this.#folder, file);
    if (UPDATING_GOLDENS) {
      mkdirSync(join(path, ".."), { recursive: true });
      writeFileSync(path, content);
    }
    expect(content).toBe(
      existsSync(path)
        ? readFileSync(path, "utf8")
        : `no golden file ${path}: run with UPDATE_GOLDEN=1`,
    );
  }

  /**
   * Checks that no file is left without a case. Called when all cases have been checked.
   *
   * @param ending of the files that are golden, if others are in the folder too
   */
  checkOrphans(ending = ""): void {
    if (!existsSync(this.#folder)) return;
    const files = readdirSync(this.#folder, { recursive: true, withFileTypes: true }).filter(
      (entry) => entry.isFile(),
    );
    const orphans = files
      .map((entry) => join(entry.parentPath, entry.name))
      .filter(
        (path) => path.endsWith(ending) && !this.#made.has(path.slice(this.#folder.length + 1)),
      );
    if (UPDATING_GOLDENS) for (const path of orphans) rmSync(path);
    else expect(orphans).toEqual([]);
  }
}

/** Returns the names of the cases of a folder with pairs `<name>.in.yaml -> <name>.out.yaml`. */
export function goldenInputs(folder: string): string[] {
  const inputs = readdirSync(folder).filter((file) => file.endsWith(".in.yaml"));
  return inputs.map((file) => file.slice(0, -".in.yaml".length));
}

export function pretty(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
