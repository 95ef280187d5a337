/**
 * Which gateway a command talks to: a cluster, or the `svc up` of this machine. The rule looks at
 * flags, the environment and what exists, never at what answers, so that a stopped `svc up` does
 * not turn a command into one on a cluster.
 *
 * 1. `--context`, `--kubeconfig`: the cluster. `--state-dir`: svc up.
 * 2. `SVC_CONTEXT`: the cluster. `SVC_STATE_DIR`: svc up.
 * 3. A state folder exists: svc up. Otherwise a kubeconfig exists: the cluster of its current
 *    context.
 */
import { existsSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { statePaths } from "../host/state.ts";
import type { BackendTarget } from "./backend.ts";
import { CliError } from "./errors.ts";

/** Namespace of the installation by convention. */
export const SYSTEM_NAMESPACE = "svc-system";

/** Address of an installation in a cluster. */
export interface ClusterTarget {
  /** undefined: the kubeconfig's current one. */
  readonly context: string | undefined;
  /** undefined: `KUBECONFIG`, or the home's. */
  readonly kubeconfig: string | undefined;
  /** Namespace of the installation. */
  readonly systemNamespace: string;
}

/**
 * Returns the cluster that a command talks to; undefined for the `svc up` of this machine.
 * @throws CliError if flags name both
 */
export function clusterOf(
  target: BackendTarget,
  env: NodeJS.ProcessEnv,
): ClusterTarget | undefined {
  const { stateDir, context, kubeconfig } = target;
  const named = context !== undefined || kubeconfig !== undefined;
  if (named && stateDir !== undefined)
    throw CliError.usage(
      "--state-dir names a svc up, and --context or --kubeconfig a cluster: use one of them",
    );
  const fromEnv = env["SVC_CONTEXT"] || undefined;
  if (named || (stateDir === undefined && fromEnv !== undefined))
    return clusterTarget({ ...target, context: context ?? fromEnv }, env);
  if (stateDir !== undefined || (env["SVC_STATE_DIR"] ?? "") !== "") return undefined;
  return existsSync(statePaths(undefined, env).dir) || !hasKubeconfig(env)
    ? undefined
    : clusterTarget(target, env);
}

/** Returns the address of an installation for a command that is about a cluster only. */
export function clusterTarget(
  { context, kubeconfig, systemNamespace }: BackendTarget,
  env: NodeJS.ProcessEnv,
): ClusterTarget {
  return {
    context: context ?? (env["SVC_CONTEXT"] || undefined),
    kubeconfig,
    systemNamespace: systemNamespace ?? (env["SVC_SYSTEM_NAMESPACE"] || SYSTEM_NAMESPACE),
  };
}

function hasKubeconfig(env: NodeJS.ProcessEnv): boolean {
  const named = env["KUBECONFIG"] ?? "";
  const files =
    named === ""
      ? [path.join(env["HOME"] || os.homedir(), ".kube", "config")]
      : named.split(path.delimiter).filter((file) => file !== "");
  return files.some((file) => existsSync(file));
}
