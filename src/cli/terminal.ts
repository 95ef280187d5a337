/** The terminal: standard input, and programs that use it. */
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { CliError } from "./errors.ts";

/** All of it, as text. */
export async function readAll(input: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of input) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}

/**
 * Runs a program with this process's input and output.
 * @returns its exit code, as a shell gives it for a signal; undefined if there is no such program
 */
export function runProgram(file: string, args: readonly string[]): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { stdio: "inherit" });
    child.on("error", (error: NodeJS.ErrnoException) =>
      error.code === "ENOENT" || error.code === "EACCES" ? resolve(undefined) : reject(error),
    );
    child.on("exit", (code, signal) => {
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
    });
  });
}

/** Prompts on the terminal without echo. */
export async function askSecret(
  question: string,
  input: NodeJS.ReadableStream,
  said: (text: string) => void,
): Promise<string> {
  said(question);
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output: nowhere, terminal: true });
  try {
    const answer = lines.question("");
    // Otherwise Ctrl+C and Ctrl+D would leave the prompt waiting forever.
    const stopped = new Promise<never>((_resolve, reject) => {
      for (const event of ["SIGINT", "close"])
        lines.once(event, () => reject(new CliError("stopped: nothing was typed")));
    });
    return await Promise.race([answer, stopped]);
  } finally {
    lines.close();
    said("\n");
  }
}
