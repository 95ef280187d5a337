/** `svc status`. */
import { Command, Option } from "commander";
import type { Backend } from "./backend.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";
import { parseDurationFlag, type TargetFlags, withTarget } from "./options.ts";
import { renderStatus, type StatusReport } from "./status.ts";
import { plain } from "./table.ts";
import { isWanted, missingObjects, unready, type Wanted, wantedObject } from "./wanted.ts";

interface Flags extends TargetFlags {
  readonly namespace?: string;
  readonly wait?: true;
  readonly timeout?: number;
  readonly output: "table" | "json";
}

const DEFAULT_TIMEOUT_MS = 5 * 60_000;
const POLL_MS = 1_000;

export function statusCommand(context: Context): Command {
  return withTarget(
    new Command("status")
      .description("Show the state of the gateway and of its objects, or wait until it is ready.")
      .argument("[objects...]", "only these objects, as <kind>/<name>")
      .option(
        "-n, --namespace <namespace>",
        "only objects of this namespace (default: of all; for named objects, default)",
      ),
  )
    .option("--wait", "wait until the gateway and the objects are ready")
    .option(
      "--timeout <duration>",
      "longest time to wait, such as 90s (default: 5m)",
      parseDurationFlag,
    )
    .addOption(
      new Option("-o, --output <format>", "output format")
        .choices(["table", "json"])
        .default("table"),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  svc status -o json\n  svc status --wait --timeout 2m\n  svc status " +
        "agent/hello -n team --wait",
    )
    .action(async (names: readonly string[], flags: Flags) => {
      if (flags.timeout !== undefined && flags.wait !== true)
        throw CliError.usage("--timeout is only of use with --wait");
      const wanted: Wanted = { namespace: flags.namespace, objects: names.map(wantedObject) };
      const backend = await context.backend(flags);
      const status = flags.wait === true ? undefined : await backend.status();
      if (status !== undefined) return show(context, status, wanted, flags.output);
      await wait(context, backend, wanted, flags);
    });
}

function show(
  context: Context,
  status: StatusReport,
  wanted: Wanted,
  output: Flags["output"],
): void {
  const shown = { ...status, objects: status.objects.filter(isWanted(wanted)) };
  context.stdout(`${output === "json" ? JSON.stringify(shown, null, 2) : renderStatus(shown)}\n`);
  const missing = missingObjects(status, wanted);
  for (const line of missing) context.stderr(`svc: ${line}\n`);
  const isWell = status.ready && status.problems.length === 0 && missing.length === 0;
  context.setExitCode(isWell ? 0 : 1);
}

/** Says on standard error what it waits for, whenever that changes. */
async function wait(
  context: Context,
  backend: Backend,
  wanted: Wanted,
  { timeout = DEFAULT_TIMEOUT_MS, output }: Flags,
): Promise<void> {
  const deadline = context.now() + timeout;
  let said = "";
  for (;;) {
    const { status, faults } = await look(backend, wanted);
    if (faults.length === 0 && status !== undefined) {
      show(context, status, wanted, output);
      return context.setExitCode(0);
    }
    const text = faults.map((line) => `  ${plain(line)}\n`).join("");
    if (context.now() >= deadline) {
      if (status !== undefined) show(context, status, wanted, output);
      throw new CliError(`not ready in time:\n${text.trimEnd()}`);
    }
    if (text !== said) context.stderr(`Waiting for:\n${text}`);
    said = text;
    await context.sleep(POLL_MS);
  }
}

/** A gateway that does not answer yet is a fault like others. */
async function look(
  backend: Backend,
  wanted: Wanted,
): Promise<{ readonly status?: StatusReport; readonly faults: readonly string[] }> {
  try {
    const status = await backend.status();
    return { status, faults: unready(status, wanted) };
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return { faults: [error.message] };
  }
}
