/** Standard input, as the command line reads it. */
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { CliError } from "./errors.ts";

/** All of it, as text. */
export async function readAll(input: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of input) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
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
