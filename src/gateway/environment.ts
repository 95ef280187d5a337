/**
 * Environment variables of the caller that started the gateway, as data: see `environment` in
 * options.ts.
 */
import * as z from "zod";
import type { Env } from "../compile/policy-secrets.ts";

const schema = z.record(z.string(), z.string());

/**
 * @param text a JSON object of texts
 * @throws Error that contains no value
 */
export function parseEnvironment(text: string): Env {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success)
    throw new Error("The standard input must be a JSON object of environment variables.");
  // Without a prototype, because a resource may name any variable.
  return Object.assign(Object.create(null) as Record<string, string>, parsed.data);
}
