/**
 * Golden file pairs: compares them, or with UPDATE_GOLDEN=1 writes them and deletes those without a
 * case.
 */
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";

const ROOT = import.meta.dirname;
const UPDATING = process.env["UPDATE_GOLDEN"] === "1";

export class Goldens {
  readonly #folder: string;
  readonly #made = new Set<string>();

  constructor(folder: string) {
    this.#folder = join(ROOT, folder);
  }

  check(file: string, content: string): void {
    this.#made.add(file);
    const path = join(this.#folder, file);
    if (UPDATING) {
      mkdirSync(join(path, ".."), { recursive: true });
      writeFileSync(path, content);
    }
    expect(content).toBe(
      existsSync(path)
        ? readFileSync(path, "utf8")
        : `no golden file ${path}: run with UPDATE_GOLDEN=1`,
    );
  }

  /** Called when all cases of the folder have been checked. */
  checkOrphans(): void {
    if (!existsSync(this.#folder)) return;
    const files = readdirSync(this.#folder, { recursive: true, withFileTypes: true }).filter(
      (entry) => entry.isFile(),
    );
    const orphans = files
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => !this.#made.has(path.slice(this.#folder.length + 1)));
    if (UPDATING) for (const path of orphans) rmSync(path);
    else expect(orphans).toEqual([]);
  }
}

export function pretty(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
