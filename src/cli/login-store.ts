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

const configSchema = z.object({
  gateway: z.object({ baseURL: z.string(), accessKey: z.string() }).optional(),
});

/** A login at an external gateway. */
export interface Login {
  /** Without a trailing slash, and without `/ext`. */
  readonly baseURL: string;
  /** The raw key. */
  readonly accessKey: string;
}

/** The specification: an empty variable counts as unset, a relative one is ignored. */
export function configFile(env: NodeJS.ProcessEnv): string {
  const named = env["XDG_CONFIG_HOME"] ?? "";
  const home = path.isAbsolute(named) ? named : path.join(env["HOME"] || os.homedir(), ".config");
  return path.join(home, "svc", "config.yaml");
}

/** Returns undefined if nobody is logged in. @throws CliError if the file cannot be read */
export async function readLogin(file: string): Promise<Login | undefined> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
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
  return config.data.gateway;
}

/** Writes the file atomically, by a temporary name and a rename. @throws CliError */
export async function writeLogin(file: string, login: Login): Promise<void> {
  const temporary = `${file}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    const handle = await open(temporary, "wx", 0o600);
    try {
      await handle.writeFile(stringify({ gateway: login }));
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

/** @returns whether there was one */
export async function removeLogin(file: string): Promise<boolean> {
  try {
    await rm(file);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    throw new CliError(`${file} cannot be removed (${code ?? "unknown error"})`);
  }
}
