/**
 * Applies a new version of the specs to the bindings that run. Policies, scopes, modes and the
 * order of Providers take effect at once, and a Provider that was removed is no longer bound. A new
 * Provider, and new settings of a Provider, need an instance of their plugin, and wait for a
 * restart.
 */
import { isDeepStrictEqual } from "node:util";
import type { BindingSpec } from "../resources/binding-spec.ts";
import {
  type Binding,
  type BindingSnapshot,
  compileBindingPolicy,
  compileSnapshot,
} from "./binding.ts";
import type { LoadedSpecs } from "./specs.ts";

/** A binding without its policy, and the spec with which it was started. */
export interface StartedBinding extends Omit<Binding, "policy"> {
  readonly spec: BindingSpec;
}

export interface AppliedSpecs {
  readonly snapshot: BindingSnapshot;
  /** Changes that wait for a restart, as sentences. */
  readonly waiting: readonly string[];
}

/** Settings of a spec that an instance keeps for its life. */
const KEPT = ["hosts", "auth", "config", "mcp"] as const;

/** @throws Error if a policy cannot be enforced */
export function applySpecs(
  { version, specs }: LoadedSpecs,
  started: readonly StartedBinding[],
): AppliedSpecs {
  const byName = new Map(started.map((binding) => [binding.name, binding]));
  const bindings: Binding[] = [];
  const waiting: string[] = [];
  for (const spec of specs.bindings) {
    const { name, type } = spec;
    const running = byName.get(name);
    if (running === undefined || running.spec.type !== type) {
      waiting.push(`Provider ${name} (${type}) is new.`);
      continue;
    }
    const changed = KEPT.filter((key) => !isDeepStrictEqual(spec[key], running.spec[key]));
    if (changed.length > 0) {
      const settings = changed.map((key) => `spec.${key}`).join(", ");
      waiting.push(`Provider ${name} has another ${settings}.`);
    }
    bindings.push({ ...running, policy: compileBindingPolicy(spec, running.plugin) });
  }
  return { snapshot: compileSnapshot(version, specs.workload, bindings), waiting };
}
