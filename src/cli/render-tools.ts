/** Formats the tools of an MCP server. */
import { NONE, some } from "../resources/columns.ts";
import type { ToolsView } from "./backend.ts";
import { table } from "./table.ts";

/** Maximum number of characters of a description in a table. */
const MAX_DESCRIPTION = 100;

/** @returns text with its final newline */
export function renderTools(view: ToolsView, output: "table" | "wide" | "json"): string {
  if (output === "json") return `${JSON.stringify(view, null, 2)}\n`;
  const isWide = output === "wide";
  const denied = view.enforcement === "audit" ? "denied (audit)" : "denied";
  const head = ["TOOL", "PROVIDER", "KEYS", ...(isWide ? ["DESCRIPTION"] : [])];
  const rows = view.tools.map(({ name, allowed, keys, description = NONE }) => [
    name,
    allowed ? "allowed" : denied,
    isWide ? keys.join(",") || NONE : some(keys, NONE),
    ...(isWide ? [shortened(description)] : []),
  ]);
  return `${table(head, rows)}\n`;
}

function shortened(text: string): string {
  return text.length <= MAX_DESCRIPTION ? text : `${text.slice(0, MAX_DESCRIPTION - 3)}...`;
}
