/** Reads the configuration file of a pod's process. */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { parse } from "yaml";
import type * as z from "zod";
import { explainIssues } from "../resources/explain.ts";
import { formatPath } from "../resources/problem.ts";

/** A mistake in the configuration, with its place and fix. */
export class ConfigFileError extends Error {
  override readonly name = "ConfigFileError";
}

/**
 * Reads the file that `--config FILE` names; without it, every setting has its default.
 * @throws ConfigFileError
 */
export function readConfig<Schema extends z.ZodType>(
  schema: Schema,
  args: readonly string[],
): z.output<Schema> {
  const file = fileOf(args);
  if (file === undefined) return parsed(schema, {}, "the defaults");
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new ConfigFileError(
      `${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? "unknown error"}). ` +
        "Mount the ConfigMap there, or correct --config.",
    );
  }
  return parsed(schema, parseYaml(text, file) ?? {}, file);
}

/** @throws ConfigFileError */
function parseYaml(text: string, file: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    throw new ConfigFileError(`${file} is not YAML: ${(error as Error).message.split("\n")[0]}`);
  }
}

function fileOf(args: readonly string[]): string | undefined {
  try {
    const { values } = parseArgs({
      args: [...args],
      strict: true,
      options: { config: { type: "string" } },
    });
    return values.config;
  } catch (error) {
    throw new ConfigFileError(`${(error as Error).message} The only option is --config FILE.`);
  }
}

function parsed<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  file: string,
): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const lines = explainIssues(result.error.issues, value, schema).map(
    ({ path, message, fix }) => `${formatPath(path)}: ${message} (${fix})`,
  );
  throw new ConfigFileError(`${file} is not valid:\n  ${lines.join("\n  ")}`);
}
