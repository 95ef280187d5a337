/**
 * Reads a key from a flag's value, standard input (`-`), a file, or the terminal. Anybody who lists
 * this machine's processes can see a flag's value, so the help recommends the other sources.
 */
import { readFile } from "node:fs/promises";
import { Secret } from "../platform/secret.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";

export interface SecretInput {
  /**
   * Name of the flag with the key, e.g. `--api-key`; with the suffix `-file`, of the one that names
   * a file.
   */
  readonly flag: string;
  readonly value: string | undefined;
  readonly file: string | undefined;
  /** Prompt on a terminal if no flag is given; undefined for no prompt. */
  readonly question: string | undefined;
}

/** Maximum length; longer than any vendor's key. */
const MAX_LENGTH = 4_096;

/** Returns undefined if no key is given. @throws CliError, which quotes nothing of it */
export async function readSecret(
  source: SecretInput,
  context: Pick<Context, "stdin" | "askSecret">,
): Promise<Secret | undefined> {
  const { flag, value, file, question } = source;
  if (value !== undefined && file !== undefined)
    throw CliError.usage(`${flag} and ${flag}-file give two keys: use only one of them`);
  if (file !== undefined)
    return checked(await readKeyFile(`${flag}-file`, file), `the file of ${flag}-file`);
  if (value === "-") return checked(await context.stdin(), "the text on standard input");
  if (value !== undefined) return checked(value, `the value of ${flag}`);
  if (question === undefined || context.askSecret === undefined) return undefined;
  return checked(await context.askSecret(question), "the input");
}

async function readKeyFile(flag: string, file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new CliError(
      `${flag}: the file cannot be read ` +
        `(${(error as NodeJS.ErrnoException).code ?? "unknown error"})`,
    );
  }
}

function checked(text: string, what: string): Secret {
  const key = text.trim();
  if (key === "") throw new CliError(`${what} is empty`);
  if (key.length > MAX_LENGTH || !/^[\x21-\x7e]+$/.test(key))
    throw new CliError(
      `${what} is not a key: a key is one line of visible ASCII characters without spaces`,
    );
  return new Secret(key);
}
