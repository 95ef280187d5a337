/** The columns of each kind's table. */
import { formatDuration } from "../platform/duration.ts";
import type { ResourceKind } from "../resources/resource-set.ts";
import type { ObjectView } from "./backend.ts";

export interface Column {
  readonly title: string;
  /** Only with `-o wide`. */
  readonly wide?: true;
  cell(object: ObjectView, now: number): string;
}

const NONE = "-";

const name: Column = { title: "NAME", cell: ({ metadata }) => metadata.name };
const ready: Column = { title: "READY", cell: ({ status }) => (status.ready ? "yes" : "no") };
const reason: Column = { title: "REASON", cell: ({ status }) => status.reason };
const message: Column = { title: "MESSAGE", wide: true, cell: ({ status }) => status.message };
const tokens: Column = { title: "TOKENS", cell: ({ status }) => count(status.tokensToday) };
const requests: Column = { title: "REQUESTS", cell: ({ status }) => count(status.requestsToday) };

export const NAMESPACE: Column = { title: "NAMESPACE", cell: ({ metadata }) => metadata.namespace };

export const COLUMNS: Readonly<Record<ResourceKind, readonly Column[]>> = {
  Agent: [
    name,
    ready,
    reason,
    tokens,
    requests,
    { title: "COST", cell: ({ status }) => cost(status.costTodayUSD, status.unpricedToday) },
    { title: "IN-FLIGHT", wide: true, cell: ({ status }) => count(status.inFlight) },
    { title: "MODELS", wide: true, cell: ({ spec }) => some(strings(spec?.["models"]), NONE) },
    message,
  ],
  ModelProvider: [
    name,
    { title: "PROVIDER", cell: ({ spec }) => text(spec?.["provider"]) },
    ready,
    reason,
    {
      title: "MODELS",
      cell: ({ spec }) => (spec === undefined ? NONE : some(strings(spec["allowedModels"]), "*")),
    },
    {
      title: "EXTERNAL",
      cell: ({ spec }) => (field(spec, "externalAccess", "enabled") === true ? "yes" : "no"),
    },
    tokens,
    { ...requests, wide: true },
    { title: "BASE-URL", wide: true, cell: ({ spec }) => text(spec?.["baseURL"]) },
    message,
  ],
  AccessKey: [
    name,
    {
      title: "MODEL-PROVIDER",
      cell: ({ spec }) => text(spec?.["modelProvider"] ?? spec?.["provider"]),
    },
    ready,
    reason,
    tokens,
    requests,
    { title: "EXPIRES", cell: ({ spec }, now) => expiry(spec?.["expiresAt"], now) },
    {
      title: "MODELS",
      wide: true,
      cell: ({ spec }) => some(strings(field(spec, "restrictions", "allowedModels")), "*"),
    },
    {
      title: "CIDRS",
      wide: true,
      cell: ({ spec }) => some(strings(field(spec, "restrictions", "allowedCIDRs")), "any"),
    },
    {
      title: "ROTATED-KEY-UNTIL",
      wide: true,
      cell: ({ spec }, now) => expiry(field(spec, "previous", "expiresAt"), now, NONE),
    },
    message,
  ],
  Provider: [
    name,
    { title: "TYPE", cell: ({ spec }) => text(spec?.["type"]) },
    { title: "ENFORCEMENT", cell: ({ spec }) => text(field(spec, "audit", "enforcement")) },
    ready,
    reason,
    {
      title: "ALLOW",
      wide: true,
      cell: ({ spec }) => some(strings(field(spec, "policy", "allow")), "*"),
    },
    {
      title: "DENY",
      wide: true,
      cell: ({ spec }) => some(strings(field(spec, "policy", "deny")), NONE),
    },
    message,
  ],
  Secret: [
    name,
    { title: "KEYS", cell: ({ keys }) => some(keys ?? [], NONE) },
    ready,
    reason,
    message,
  ],
};

/** `in 29d`, `2h ago`; `never` without a time. */
export function expiry(time: unknown, now: number, without = "never"): string {
  if (typeof time !== "string") return without;
  const at = Date.parse(time);
  if (Number.isNaN(at)) return time;
  return at > now ? `in ${formatDuration(at - now)}` : `${formatDuration(now - at)} ago`;
}

/** Formats `$0.0123`; models without a price are excluded, and their number is shown. */
function cost(usd: number | undefined, unpriced = 0): string {
  if (usd === undefined) return NONE;
  const digits = usd !== 0 && usd < 1 ? 4 : 2;
  return `$${usd.toFixed(digits)}${unpriced === 0 ? "" : ` (+${unpriced} unpriced)`}`;
}

function count(value: number | undefined): string {
  return value === undefined ? NONE : String(value);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : NONE;
}

/** Returns the first three values, and the number of further ones. */
function some(values: readonly string[], without: string): string {
  if (values.length === 0) return without;
  return values.length <= 3
    ? values.join(",")
    : `${values.slice(0, 3).join(",")}+${values.length - 3}`;
}

function strings(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function field(spec: ObjectView["spec"], outer: string, inner: string): unknown {
  return (spec?.[outer] as Record<string, unknown> | undefined)?.[inner];
}
