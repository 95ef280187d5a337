/** `svc guard`: the classifier service. */
import { Command, InvalidArgumentError, Option } from "commander";
import { CLASSIFIER_TYPES } from "../guard/service/classifier.ts";
import { createLog } from "../platform/log.ts";
import type { ClassifierType } from "../policy/snapshot.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";
import { guardEvalCommand } from "./guard-eval-command.ts";
import {
  type ClassifierFlags,
  classifierSettings,
  classifierSurroundings,
  setupError,
  withClassifier,
} from "./guard-flags.ts";
import { parseAtLeast } from "./options.ts";

interface Flags extends ClassifierFlags {
  readonly listen: Listen;
  readonly maxConcurrent: number;
  readonly maxQueued: number;
  readonly drainDelay: number;
  readonly drain: number;
  readonly logLevel: string;
}

interface Listen {
  readonly host: string;
  readonly port: number;
  toString(): string;
}

export function guardCommand(context: Context): Command {
  const command = withClassifier(
    new Command("guard").description(
      "Run the classifier service that the gateway's guards ask, or measure a classifier.",
    ),
    "classifier to serve",
  )
    // The flags of svc guard eval are its own.
    .enablePositionalOptions()
    .option(
      "--listen <address>",
      "address and port to listen on",
      parseListen,
      parseListen("127.0.0.1:8200"),
    )
    .option(
      "--max-concurrent <number>",
      "requests that are classified at once",
      parseAtLeast(1),
      16,
    )
    .option(
      "--max-queued <number>",
      "requests that may wait; further ones are refused with 503",
      parseAtLeast(0),
      64,
    )
    .option(
      "--drain-delay <seconds>",
      "time after SIGTERM in which requests are still accepted",
      parseAtLeast(0),
      0,
    )
    .option(
      "--drain <seconds>",
      "time that requests under way then have to finish",
      parseAtLeast(0),
      30,
    )
    .addOption(
      new Option("--log-level <level>", "minimum level of log lines, on standard error")
        .choices(["debug", "info", "warn", "error"])
        .default("info"),
    )
    .addHelpText(
      "after",
      `
Each flag can be set by an environment variable: --max-queued by SVC_GUARD_MAX_QUEUED.

Examples:
  svc guard --type stub
  svc guard --type promptGuard --model ./Llama-Prompt-Guard-2-86M
  svc guard --type llamaGuard --endpoint http://127.0.0.1:11434/v1 --model llama-guard3`,
    )
    .action(async () => {
      readEnvironment(command, context.env);
      await serve(command.opts<Flags>(), context);
    });
  command.addCommand(guardEvalCommand(context));
  return command;
}

/** Sets the flags that are not on the command line from `SVC_GUARD_<NAME>`. */
function readEnvironment(command: Command, env: NodeJS.ProcessEnv): void {
  for (const option of command.options) {
    const name = `SVC_GUARD_${option.name().replaceAll("-", "_").toUpperCase()}`;
    const text = env[name] ?? "";
    const flag = option.attributeName();
    if (text === "" || command.getOptionValueSource(flag) === "cli") continue;
    try {
      const value: unknown = option.parseArg?.(text, undefined) ?? text;
      command.setOptionValueWithSource(flag, value, "env");
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error;
      throw CliError.usage(`${name}: ${error.message}`);
    }
  }
}

async function serve(flags: Flags, context: Context): Promise<void> {
  const { type } = flags;
  if (type === undefined)
    throw CliError.usage(`--type (or SVC_GUARD_TYPE) is needed: ${CLASSIFIER_TYPES.join(", ")}`);
  const classifier = classifierSettings(flags, type, context.env);
  // Loaded when it is used: other commands start without an HTTP server.
  const { serveGuard } = await import("../guard/service/serve.ts");
  const log = createLog({ level: flags.logLevel, name: "guard" });
  try {
    await serveGuard(
      {
        classifier,
        ...hostAndPort(flags.listen),
        maxConcurrent: flags.maxConcurrent,
        maxQueued: flags.maxQueued,
        acceptMs: flags.drainDelay * 1_000,
        drainMs: flags.drain * 1_000,
      },
      {
        ...classifierSurroundings(context),
        log,
        monotonic: () => performance.now(),
        stopped: stopSignal(),
        onReady: (url, { type, model }) =>
          context.stdout(`svc guard: ${describe(type, model)} at ${url}\n`),
      },
    );
  } catch (error) {
    throw listenError(setupError(error), flags.listen);
  }
}

const hostAndPort = ({ host, port }: Listen): { readonly host: string; readonly port: number } => ({
  host,
  port,
});

function describe(type: ClassifierType, model: string | undefined): string {
  return model === undefined ? type : `${type} (${model})`;
}

function listenError(error: unknown, listen: Listen): unknown {
  const { code, syscall } = (error ?? {}) as NodeJS.ErrnoException;
  if (syscall !== "listen" && code !== "ENOTFOUND") return error;
  return new CliError(
    `cannot listen on ${String(listen)} (${code}): choose another address with --listen`,
  );
}

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    process.once("SIGTERM", () => resolve());
    process.once("SIGINT", () => resolve());
  });
}

/** Port 0 is any free one. */
function parseListen(text: string): Listen {
  const [, ipv6, host = ipv6, port] =
    /^(?:\[([0-9a-f:.]{2,45})\]|([^\s:[\]]{1,253})):(\d{1,5})$/i.exec(text) ?? [];
  if (host === undefined || Number(port) > 65_535)
    throw new InvalidArgumentError("expected <address>:<port> such as 127.0.0.1:8200");
  return { host, port: Number(port), toString: () => text };
}
