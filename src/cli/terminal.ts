/** Standard input, as the command line reads it. */
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import type { ReadStream } from "node:tty";

/** All of it, as text. */
export async function readAll(input: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of input) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}

/** A question on the terminal; what is typed is not shown. */
export async function askSecret(question: string, input: ReadStream, said: (text: string) => void): Promise<string> {
  said(question);
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input, output: nowhere, terminal: true });
  try {
    const answer = lines.question("");
    // Ctrl+C would otherwise leave the question waiting for ever.
    const stopped = new Promise<never>((_resolve, reject) => lines.once("SIGINT", () => reject(new Error("stopped"))));
    return await Promise.race([answer, stopped]);
  } finally {
    lines.close();
    said("\n");
  }
}
