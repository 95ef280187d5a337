/**
 * Where a command gets a key from: a flag's value, standard input (`-`), a file, or the terminal. A
 * flag's value is seen by whoever lists this machine's processes, so help recommends the others.
 */
import { readFile } from "node:fs/promises";
import { Secret } from "../platform/secret.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";

export interface SecretSource {
  /**
   * Name of the flag that holds it, e.g. `--api-key`; with `-file` behind it, of the one that names
   * a file.
   */
  readonly flag: string;
  readonly value: string | undefined;
  readonly file: string | undefined;
  /** Asked on a terminal where no flag is given; undefined: not asked. */
  readonly question: string | undefined;
}

/** Longer than any key that a vendor hands out. */
const MAX_LENGTH = 4_096;

/** undefined where none is given. @throws CliError, which quotes nothing of it */
export async function readSecret(
  source: SecretSource,
  context: Pick<Context, "stdin" | "askSecret">,
): Promise<Secret | undefined> {
  const { flag, value, file, question } = source;
  if (value !== undefined && file !== undefined)
    throw CliError.usage(`${flag} and ${flag}-file are two keys: give one of them`);
  if (file !== undefined)
    return checked(await readKeyFile(`${flag}-file`, file), `what ${flag}-file names`);
  if (value === "-") return checked(await context.stdin(), "what came on standard input");
  if (value !== undefined) return checked(value, `the value of ${flag}`);
  if (question === undefined || context.askSecret === undefined) return undefined;
  return checked(await context.askSecret(question), "what was typed");
}

async function readKeyFile(flag: string, file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new CliError(
      `${flag}: the file cannot be read (${(error as NodeJS.ErrnoException).code ?? "unknown error"})`,
    );
  }
}

function checked(text: string, what: string): Secret {
  const key = text.trim();
  if (key === "") throw new CliError(`${what} is empty`);
  if (key.length > MAX_LENGTH || !/^[\x21-\x7e]+$/.test(key))
    throw new CliError(
      `${what} is no key: a key is one line of visible ASCII characters without spaces`,
    );
  return new Secret(key);
}
