/** Flags that several commands share, and readers of their values. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { parseDuration } from "../platform/duration.ts";
import { DEFAULT_NAMESPACE } from "../resources/metadata.ts";

export interface TargetFlags extends ClusterFlags {
  readonly stateDir?: string;
}

export interface ClusterFlags {
  readonly context?: string;
  readonly kubeconfig?: string;
  readonly systemNamespace?: string;
}

export interface NamespaceFlags {
  readonly namespace: string;
}

/** Selects the `svc up` to use. */
export function withStateDir(command: Command): Command {
  return command.option("--state-dir <dir>", "folder that svc up was started with");
}

/** Selects the installation in a cluster to use. */
export function withCluster(command: Command): Command {
  return command
    .option(
      "--context <name>",
      "context of the kubeconfig (default: $SVC_CONTEXT, or the current one)",
    )
    .option("--kubeconfig <file>", "kubeconfig (default: $KUBECONFIG, or ~/.kube/config)")
    .option(
      "--system-namespace <namespace>",
      "namespace of the installation in the cluster (default: $SVC_SYSTEM_NAMESPACE, or " +
        "svc-system)",
    );
}

/** Selects what the command talks to: a `svc up`, or a cluster. */
export function withTarget(command: Command): Command {
  return withCluster(withStateDir(command));
}

export function withNamespace(command: Command, what = "namespace of the object"): Command {
  return command.option("-n, --namespace <namespace>", what, DEFAULT_NAMESPACE);
}

/** A flag that may be repeated. */
export function repeatable(flags: string, description: string): Option {
  return new Option(flags, `${description}; may be repeated`).argParser(
    (value: string, before: string[] | undefined) => [...(before ?? []), value],
  );
}

export function parseCount(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("expected a whole number");
  return Number(text);
}

/** Returns a reader of whole numbers from `least` on. */
export function parseAtLeast(least: number): (text: string) => number {
  return (text) => {
    const count = /^\d{1,9}$/.test(text) ? Number(text) : -1;
    if (count < least) throw new InvalidArgumentError(`expected a whole number from ${least} on`);
    return count;
  };
}

/** @returns a number from 0 to 1 */
export function parseFraction(text: string): number {
  if (!/^(?:0|1|0?\.\d{1,6}|1\.0{1,6})$/.test(text))
    throw new InvalidArgumentError("expected a number from 0 to 1, such as 0.5");
  return Number(text);
}

/** @returns milliseconds */
export function parseDurationFlag(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined)
    throw new InvalidArgumentError("expected a duration such as 30m, 12h or 7d");
  return ms;
}
