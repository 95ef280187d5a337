/**
 * File of `svc login`: `$XDG_CONFIG_HOME/svc/config.yaml`, readable only by this user. XDG Base
 * Directory: https://specifications.freedesktop.org/basedir-spec/latest/
 */
import { randomBytes } from "node:crypto";
import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { parse, stringify } from "yaml";
import * as z from "zod";
import { CliError } from "./errors.ts";

const loginSchema = z.object({ baseURL: z.string(), accessKey: z.string() });

const configSchema = z.object({
  gateway: loginSchema.optional(),
  keys: z.record(z.string(), loginSchema).optional(),
});

/** A login at an external gateway. */
export interface Login {
  /** Without a trailing slash, and without `/ext`. */
  readonly baseURL: string;
  /** The raw key. */
  readonly accessKey: string;
}

/** What the file contains. */
export interface Logins {
  /** The login without a name; undefined if there is none. */
  readonly login: Login | undefined;
  /** Logins by the name of their AccessKey. */
  readonly keys: ReadonlyMap<string, Login>;
}

const NO_LOGINS: Logins = { login: undefined, keys: new Map() };

/** The specification: an empty variable counts as unset, a relative one is ignored. */
export function configFile(env: NodeJS.ProcessEnv): string {
  const named = env["XDG_CONFIG_HOME"] ?? "";
  const home = path.isAbsolute(named) ? named : path.join(env["HOME"] || os.homedir(), ".config");
  return path.join(home, "svc", "config.yaml");
}

/** @throws CliError if the file cannot be read */
export async function readLogins(file: string): Promise<Logins> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return NO_LOGINS;
    throw new CliError(`${file} cannot be read (${code ?? "unknown error"})`);
  }
  // The parser's own messages would quote the text.
  let value: unknown;
  try {
    value = parse(text, { logLevel: "silent" }) ?? {};
  } catch {
    value = undefined;
  }
  const config = configSchema.safeParse(value);
  if (!config.success) throw new CliError(`${file} is not a file of svc login: log in again`);
  const { gateway, keys = {} } = config.data;
  return { login: gateway, keys: new Map(Object.entries(keys)) };
}

/**
 * Stores a login, and keeps the others.
 * @param name of its AccessKey; undefined for the login without a name
 * @throws CliError
 */
export async function storeLogin(
  file: string,
  login: Login,
  name: string | undefined,
): Promise<void> {
  // A file that cannot be read is replaced.
  const before = await readLogins(file).catch(() => NO_LOGINS);
  await write(
    file,
    name === undefined
      ? { ...before, login }
      : { ...before, keys: new Map([...before.keys, [name, login]]) },
  );
}

/** Writes the file atomically, by a temporary name and a rename. @throws CliError */
async function write(file: string, { login, keys }: Logins): Promise<void> {
  const content = {
    ...(login === undefined ? {} : { gateway: login }),
    ...(keys.size === 0 ? {} : { keys: Object.fromEntries(keys) }),
  };
  const temporary = `${file}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    const handle = await open(temporary, "wx", 0o600);
    try {
      await handle.writeFile(stringify(content));
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw new CliError(
      `${file} cannot be written (${(error as NodeJS.ErrnoException).code ?? "unknown error"})`,
    );
  }
}

/** Removes the login of one AccessKey. @returns whether there was one */
export async function removeKey(file: string, name: string): Promise<boolean> {
  const { login, keys } = await readLogins(file);
  const kept = new Map([...keys].filter(([one]) => one !== name));
  if (kept.size === keys.size) return false;
  await write(file, { login, keys: kept });
  return true;
}

/** Removes all logins. @returns whether there was one */
export async function removeLogins(file: string): Promise<boolean> {
  try {
    await rm(file);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    throw new CliError(`${file} cannot be removed (${code ?? "unknown error"})`);
  }
}
