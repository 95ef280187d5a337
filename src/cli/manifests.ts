/** Reads manifests: a file, a folder's files, or standard input. */
import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { isHidden, isResourceFile } from "../sources/folder/scan.ts";
import type { ManifestText } from "./backend.ts";
import { CliError } from "./errors.ts";

/** @param stdin read for `-`, at most once */
export async function readManifestFiles(
  names: readonly string[],
  stdin: () => Promise<string>,
): Promise<readonly ManifestText[]> {
  if (names.filter((name) => name === "-").length > 1)
    throw CliError.usage("standard input can be read once: name -f - once");
  const manifests: ManifestText[] = [];
  for (const name of names) {
    if (name === "-") manifests.push({ source: "(standard input)", text: await stdin() });
    else manifests.push(...(await readPath(name)));
  }
  return manifests;
}

async function readPath(name: string): Promise<ManifestText[]> {
  try {
    if (!(await stat(name)).isDirectory())
      return [{ source: name, text: await readFile(name, "utf8") }];
    const files = (await readdir(name, { recursive: true, withFileTypes: true }))
      .filter((entry) => !entry.isDirectory() && isResourceFile(entry.name))
      .map((entry) => path.join(entry.parentPath, entry.name))
      .filter((file) => !path.relative(name, file).split(path.sep).some(isHidden))
      .toSorted();
    if (files.length === 0)
      throw new CliError(`${name}: the folder holds no .yaml, .yml or .json file`);
    return await Promise.all(
      files.map(async (file) => ({ source: file, text: await readFile(file, "utf8") })),
    );
  } catch (error) {
    if (error instanceof CliError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new CliError(
      code === "ENOENT"
        ? `${name}: there is no such file or folder`
        : `${name}: cannot be read (${code})`,
    );
  }
}
