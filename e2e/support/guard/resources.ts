/** GuardBindings and those who name them, as YAML (JSON is YAML). */

export interface BindingOptions {
  readonly enforcement?: "enforce" | "audit";
  readonly timeoutMs?: number;
  /** More of its spec. */
  readonly spec?: Readonly<Record<string, unknown>>;
}

/** A GuardBinding of the type `stub`, whose classifier is at the address. */
export function bindingYaml(
  name: string,
  endpoint: string,
  { enforcement = "enforce", timeoutMs = 10_000, spec = {} }: BindingOptions = {},
): string {
  return JSON.stringify({
    apiVersion: "svc.io/v1",
    kind: "GuardBinding",
    metadata: { name },
    spec: { classifier: { type: "stub", endpoint }, enforcement, timeoutMs, ...spec },
  });
}

/** An item of a list of guards. */
export interface GuardRef {
  readonly binding: string;
  readonly enforcement?: "enforce" | "audit";
  readonly scan?: {
    readonly prompts?: boolean;
    readonly responses?: boolean;
    readonly toolResults?: { readonly tools: readonly string[] };
  };
}

/** Scans everything. */
export const SCAN_ALL = { prompts: true, toolResults: { tools: ["*"] }, responses: true } as const;

/** An Agent whose calls are guarded. */
export function guardedYaml(
  name: string,
  models: readonly string[],
  guards: readonly GuardRef[],
  rateLimits: Readonly<Record<string, number>> = {},
): string {
  return JSON.stringify({
    apiVersion: "svc.io/v1",
    kind: "Agent",
    metadata: { name },
    spec: { models, rateLimits, guards },
  });
}
