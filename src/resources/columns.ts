/** Columns of the tables of `svc get`, and the cells that several kinds share. */
import { formatDuration } from "../platform/duration.ts";
import type { GuardUsage, ObjectUsage } from "./usage.ts";

/** An object as the control API shows it, as far as tables need it. */
export interface ColumnInput {
  readonly metadata: { readonly namespace: string; readonly name: string };
  /** The spec in force; undefined if there is none. */
  readonly spec?: Readonly<Record<string, unknown>>;
  /** For a Secret: the names of its values. */
  readonly keys?: readonly string[];
  readonly status: {
    readonly ready: boolean;
    readonly reason: string;
    readonly message: string;
  } & Partial<ObjectUsage> &
    Partial<GuardUsage>;
}

export interface Column {
  readonly title: string;
  /** Only with `-o wide`. */
  readonly wide?: true;
  /** @param now milliseconds since the epoch */
  cell(object: ColumnInput, now: number): string;
}

/** Text of a cell without a value. */
export const NONE = "-";

export const NAME: Column = { title: "NAME", cell: ({ metadata }) => metadata.name };
export const NAMESPACE: Column = { title: "NAMESPACE", cell: ({ metadata }) => metadata.namespace };
export const READY: Column = {
  title: "READY",
  cell: ({ status }) => (status.ready ? "yes" : "no"),
};
export const REASON: Column = { title: "REASON", cell: ({ status }) => status.reason };
export const MESSAGE: Column = {
  title: "MESSAGE",
  wide: true,
  cell: ({ status }) => status.message,
};
export const TOKENS: Column = {
  title: "TOKENS",
  cell: ({ status }) => count(status.tokensToday),
};
export const REQUESTS: Column = {
  title: "REQUESTS",
  cell: ({ status }) => count(status.requestsToday),
};
export const COST: Column = {
  title: "COST",
  cell: ({ status }) => cost(status.costTodayUSD, status.unpricedToday),
};
export const IN_FLIGHT: Column = {
  title: "IN-FLIGHT",
  wide: true,
  cell: ({ status }) => count(status.inFlight),
};

/** `in 29d`, `2h ago`; `never` without a time. */
export function expiry(time: unknown, now: number, without = "never"): string {
  if (typeof time !== "string") return without;
  const at = Date.parse(time);
  if (Number.isNaN(at)) return time;
  return at > now ? `in ${formatDuration(at - now)}` : `${formatDuration(now - at)} ago`;
}

/** Returns a value that is a text, or {@link NONE}. */
export function text(value: unknown): string {
  return typeof value === "string" ? value : NONE;
}

/** Returns the first three values, and the number of further ones. */
export function some(values: readonly string[], without: string): string {
  if (values.length === 0) return without;
  return values.length <= 3
    ? values.join(",")
    : `${values.slice(0, 3).join(",")}+${values.length - 3}`;
}

/** Returns the names of the GuardBindings of a list of guards. */
export function guardNames(value: unknown): string {
  const items: readonly unknown[] = Array.isArray(value) ? value : [];
  const names = items.map((item) => (item as { readonly binding?: unknown } | null)?.binding);
  return some(strings(names), NONE);
}

/** Returns the texts of a list; none of another value. */
export function strings(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

/** Returns a field of an object of the spec. */
export function field(spec: ColumnInput["spec"], outer: string, inner: string): unknown {
  return (spec?.[outer] as Record<string, unknown> | undefined)?.[inner];
}

/** Formats `$0.0123`; models without a price are excluded, and their number is shown. */
function cost(usd: number | undefined, unpriced = 0): string {
  if (usd === undefined) return NONE;
  const digits = usd !== 0 && usd < 1 ? 4 : 2;
  return `$${usd.toFixed(digits)}${unpriced === 0 ? "" : ` (+${unpriced} unpriced)`}`;
}

/** Formats a number of a status; {@link NONE} where it is not known. */
export function count(value: number | undefined): string {
  return value === undefined ? NONE : String(value);
}
