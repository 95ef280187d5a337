/** Request fields that chat completions and the Responses API of OpenAI share. */
import type { Fields } from "../fields.ts";
import type { Reasoning } from "../model.ts";

const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;

/** @param key name of the field, which differs between the two APIs */
export function parseEffort(fields: Fields | undefined, key: string): Reasoning | undefined {
  const effort = fields?.oneOf(key, EFFORTS);
  if (effort === undefined) return undefined;
  return effort === "none" ? { kind: "off" } : { kind: "effort", effort };
}

/** `safety_identifier` is the newer name and wins. */
export function parseUser(fields: Fields): string | undefined {
  const older = fields.string("user");
  const user = fields.string("safety_identifier") ?? older;
  return user === "" ? undefined : user;
}
