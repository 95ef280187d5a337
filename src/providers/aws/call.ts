/** Reads the operation of a request in each protocol. */
import type { ServiceRequest } from "../contract.ts";
import type { Parameters } from "../raw-url.ts";
import { isJsonObject, type StrictJson, parseStrictJson } from "../strict-json.ts";
import type { AwsOperation, Service } from "./service-table.ts";

export type AwsCall =
  | {
      readonly kind: "call";
      readonly service: Service;
      readonly operation: AwsOperation;
      readonly labels: Readonly<Record<string, string>>;
      readonly query: Parameters;
      readonly fields: () => AwsJsonObject | undefined;
    }
  | { readonly kind: "doubt"; readonly reason: string; readonly hint?: string };

export function doubt(reason: string, hint?: string): AwsCall & { readonly kind: "doubt" } {
  return { kind: "doubt", reason, ...(hint === undefined ? {} : { hint }) };
}

export type AwsJsonObject = Readonly<Record<string, StrictJson>>;

/** Returns undefined if the body is not JSON that every parser interprets identically. */
export function jsonFields(request: ServiceRequest): AwsJsonObject | undefined {
  if (request.body === undefined || request.headers.has("content-encoding")) return undefined;
  const parsed = parseStrictJson(request.body);
  return parsed.kind === "parsed" && isJsonObject(parsed.value) ? parsed.value : undefined;
}

/** Returns client text, bounded for a message and without control characters. */
export function safe(text: string): string {
  return text.replace(/[^A-Za-z0-9_.:/-]/g, "?").slice(0, 64) || "nothing";
}
