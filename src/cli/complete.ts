/**
 * Completes a command line. The shells' scripts call `svc __complete` with the words so far, so
 * completions always match the program's version.
 */
import type { Command, Option } from "commander";
import type { Context } from "./context.ts";
import { KIND_NAMES, findKind } from "./kinds.ts";

export interface Completions {
  readonly words: readonly string[];
  /** The shell may offer names of files as well. */
  readonly files: boolean;
}

const NOTHING: Completions = { words: [], files: false };

/** Flags whose value is a file or a folder. */
const FILE_VALUE = /<(?:file|dir)>$/;

/** Arguments that are files. */
const FILE_ARGUMENTS: ReadonlySet<string> = new Set(["dataset"]);

/** A gateway that does not answer must not block the shell. */
const NAMES_TIMEOUT_MS = 1_500;

/** @param words after `svc`; the last one is being typed, and empty for a new word */
export async function complete(
  program: Command,
  words: readonly string[],
  context: Context,
): Promise<Completions> {
  const last = words.at(-1) ?? "";
  const current = last === "=" ? "" : last;
  const { command, positionals, flags, pending } = walk(program, words.slice(0, -1));
  if (pending !== undefined) return valuesOf(pending, current);
  const glued = /^(--[^=]+)=(.*)$/.exec(current);
  if (glued !== null) {
    const option = command.options.find(({ long }) => long === glued[1]);
    if (option === undefined) return NOTHING;
    const values = valuesOf(option, glued[2] ?? "");
    return { ...values, words: values.words.map((value) => `${glued[1] ?? ""}=${value}`) };
  }
  if (current.startsWith("-")) return only(flagNames(command), current);
  if (FILE_ARGUMENTS.has(command.registeredArguments[positionals.length]?.name() ?? ""))
    return { words: [], files: true };
  const children = positionals.length === 0 ? shown(command) : [];
  return only([...children, ...(await positional(command, positionals, flags, context))], current);
}

interface Walked {
  readonly command: Command;
  readonly positionals: readonly string[];
  /** Values by the flag's long name. */
  readonly flags: ReadonlyMap<string, string>;
  /** The flag whose value is being typed. */
  readonly pending: Option | undefined;
}

function walk(program: Command, words: readonly string[]): Walked {
  let command = program;
  let pending: Option | undefined;
  const positionals: string[] = [];
  const flags = new Map<string, string>();
  for (const word of words) {
    if (pending !== undefined) {
      // bash splits --flag=value into three words.
      if (word === "=") continue;
      flags.set(pending.long ?? "", word);
      pending = undefined;
    } else if (word.startsWith("-") && word !== "-") {
      const [name, value] = word.split("=", 2);
      const option = command.options.find(({ short, long }) => name === short || name === long);
      if (option !== undefined && value !== undefined) flags.set(option.long ?? "", value);
      else if (option?.required === true) pending = option;
      else if (option !== undefined) flags.set(option.long ?? "", "");
    } else {
      const next = command.commands.find(
        (child) => child.name() === word || child.aliases().includes(word),
      );
      if (next !== undefined && positionals.length === 0) command = next;
      else positionals.push(word);
    }
  }
  return { command, positionals, flags, pending };
}

function valuesOf(option: Option, current: string): Completions {
  if (option.argChoices !== undefined) return only(option.argChoices, current);
  return { words: [], files: FILE_VALUE.test(option.flags) };
}

function flagNames(command: Command): string[] {
  return [
    ...command.options
      .filter((option) => !option.hidden)
      .map(({ long, short }) => long ?? short ?? ""),
    "--help",
  ];
}

function shown(command: Command): string[] {
  if (command.commands.length === 0) return [];
  return [
    ...command.commands.map((child) => child.name()).filter((name) => !name.startsWith("__")),
    "help",
  ];
}

async function positional(
  command: Command,
  positionals: readonly string[],
  flags: ReadonlyMap<string, string>,
  context: Context,
): Promise<readonly string[]> {
  const argument =
    command.registeredArguments[
      Math.min(positionals.length, command.registeredArguments.length - 1)
    ];
  if (argument === undefined) return [];
  if (argument.argChoices !== undefined) return argument.argChoices;
  const parent = command.parent?.name() ?? "";
  if (command.name() === "get" || (command.name() === "delete" && parent !== "access-key")) {
    const [kind] = positionals;
    if (kind === undefined)
      return [
        ...KIND_NAMES.map(({ plural }) => plural),
        ...(command.name() === "get" ? ["agent-def", "metrics", "tools"] : []),
      ];
    return names(ofKind(kind), positionals.slice(1), flags, context);
  }
  if (parent === "access-key") return names("access-key", positionals, flags, context);
  const kind = argument.name();
  return kind === "agent" || kind === "provider" ? names(kind, positionals, flags, context) : [];
}

/** Returns the kind whose names may follow a word after `svc get`. */
function ofKind(word: string): string {
  if (/^agent-?def/i.test(word)) return "agent";
  return word === "tools" || word === "tool" ? "provider" : word;
}

/** Returns names of objects that are not on the line yet; none if the gateway cannot be asked. */
async function names(
  kind: string,
  taken: readonly string[],
  flags: ReadonlyMap<string, string>,
  context: Context,
): Promise<readonly string[]> {
  const found = findKind(kind);
  if (found === undefined) return [];
  let timer: NodeJS.Timeout | undefined;
  try {
    const backend = await context.backend({
      stateDir: flags.get("--state-dir"),
      context: flags.get("--context"),
      kubeconfig: flags.get("--kubeconfig"),
    });
    const late = new Promise<never>(
      (_resolve, reject) => (timer = setTimeout(() => reject(new Error("late")), NAMES_TIMEOUT_MS)),
    );
    const objects = await Promise.race([
      backend.list(found.kind, flags.get("--namespace") ?? "default"),
      late,
    ]);
    return objects.map(({ metadata }) => metadata.name).filter((name) => !taken.includes(name));
  } catch {
    return [];
  } finally {
    clearTimeout(timer);
  }
}

function only(words: readonly string[], start: string): Completions {
  return { words: words.filter((word) => word.startsWith(start)), files: false };
}
