/**
 * Names of kinds as users type them: singular, plural, short, with or without hyphens, in any case.
 */
import { nearest } from "../resources/explain.ts";
import type { ResourceKind } from "../resources/resource-set.ts";
import { CliError } from "./errors.ts";

export interface KindName {
  readonly kind: ResourceKind;
  /** Name in the output of `-o name`. */
  readonly singular: string;
  /** Name in help and tables. */
  readonly plural: string;
  readonly short?: string;
}

export const KIND_NAMES: readonly KindName[] = [
  { kind: "Agent", singular: "agent", plural: "agents" },
  { kind: "ModelProvider", singular: "model-provider", plural: "model-providers", short: "mp" },
  { kind: "AccessKey", singular: "access-key", plural: "access-keys", short: "ak" },
  { kind: "Provider", singular: "provider", plural: "providers" },
  { kind: "Secret", singular: "secret", plural: "secrets" },
];

/** Kinds of the interface that are not implemented yet. */
const LATER = /^(?:guards?|guard-?bindings?|sessions?)$/i;

/** @throws CliError, a usage error that suggests similar names */
export function kindNamed(text: string): KindName {
  const found = findKind(text);
  if (found !== undefined) return found;
  if (LATER.test(text)) throw new CliError(`the kind '${text}' is not supported yet`);
  const names = KIND_NAMES.map(({ plural }) => plural);
  const near = nearest(text, names);
  throw CliError.usage(
    `there is no kind '${text}'${near === undefined ? `: use one of ${names.join(", ")}` : `: did you mean ${near}?`}`,
  );
}

export function findKind(text: string): KindName | undefined {
  const plain = text.toLowerCase().replaceAll("-", "");
  return KIND_NAMES.find(({ singular, plural, short }) =>
    [singular, plural, short].some((name) => name?.replaceAll("-", "") === plain),
  );
}

export function kindName(kind: ResourceKind): KindName {
  const found = KIND_NAMES.find((entry) => entry.kind === kind);
  if (found === undefined) throw new Error(`no name for the kind ${kind}`);
  return found;
}
