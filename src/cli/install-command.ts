/** `svc install`: Helm with the chart of this package. */
import path from "node:path";
import { Command } from "commander";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";
import { repeatable } from "./options.ts";
import { SYSTEM_NAMESPACE } from "./target.ts";

interface Flags {
  readonly namespace: string;
  readonly values?: readonly string[];
  readonly set?: readonly string[];
  readonly dryRun?: true;
  readonly context?: string;
  readonly kubeconfig?: string;
}

/** Name of the release, and so of the objects: `svc-gateway`, `svc-controller`. */
const RELEASE = "svc";

export function installCommand(context: Context): Command {
  return new Command("install")
    .description("Install Svc in a cluster with Helm, or upgrade the installation.")
    .option("-n, --namespace <namespace>", "namespace of the installation", SYSTEM_NAMESPACE)
    .addOption(repeatable("-f, --values <file>", "file of the chart's values"))
    .addOption(repeatable("--set <key=value>", "one of the chart's values"))
    .option("--dry-run", "print the manifests, and change nothing")
    .option(
      "--context <name>",
      "context of the kubeconfig (default: $SVC_CONTEXT, or the current one)",
    )
    .option("--kubeconfig <file>", "kubeconfig (default: $KUBECONFIG, or ~/.kube/config)")
    .addHelpText(
      "after",
      "\nHelm 3.17 or later is found on the PATH, or by $SVC_HELM.\n\nExamples:\n  svc install " +
        "--dry-run --set images.registry=registry.example.com/platform\n  svc install -f " +
        "values.yaml --context prod && svc status --context prod --wait",
    )
    .action(async (flags: Flags) => {
      const helm = context.env["SVC_HELM"] || "helm";
      const code = await context.runProgram(helm, helmArguments(flags, context));
      if (code === undefined)
        throw new CliError(
          `${helm} was not found. Install Helm (https://helm.sh/docs/intro/install), or name it ` +
            "with SVC_HELM=/path/to/helm.",
        );
      if (code !== 0) throw new CliError(`helm failed with exit code ${code}; its reason is above`);
    });
}

function helmArguments(flags: Flags, { root, env }: Pick<Context, "root" | "env">): string[] {
  const { namespace, values = [], set = [], kubeconfig } = flags;
  const kubeContext = flags.context ?? (env["SVC_CONTEXT"] || undefined);
  const chart = path.join(root, "charts/svc");
  return [
    ...(flags.dryRun === true
      ? ["template", RELEASE, chart, "--namespace", namespace]
      : ["upgrade", "--install", RELEASE, chart, "--namespace", namespace, "--create-namespace"]),
    ...values.flatMap((file) => ["--values", file]),
    ...set.flatMap((pair) => ["--set", pair]),
    ...(kubeContext === undefined ? [] : ["--kube-context", kubeContext]),
    ...(kubeconfig === undefined ? [] : ["--kubeconfig", kubeconfig]),
  ];
}
