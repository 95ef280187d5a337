#!/usr/bin/env node
/** The command line's process. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { createProgram } from "../cli/program.ts";
import { StartError } from "../up/errors.ts";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const { version } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as { version: string };

try {
  await createProgram(root, version).parseAsync();
} catch (error) {
  if (!(error instanceof StartError)) throw error;
  process.stderr.write(`svc: ${error.message}\n`);
  process.exit(1);
}
