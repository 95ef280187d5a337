/**
 * Names of kinds as users type them: singular, plural, short, with or without hyphens, in any case.
 */
import { nearest } from "../resources/explain.ts";
import type { KindNames } from "../resources/kind.ts";
import { KINDS, RESOURCE_KINDS, type ResourceKind } from "../resources/kinds.ts";
import { CliError } from "./errors.ts";

/** A kind and its names. */
export interface KindName extends KindNames {
  readonly kind: ResourceKind;
}

/** Names of all kinds. */
export const KIND_NAMES: readonly KindName[] = RESOURCE_KINDS.map((kind) => ({
  kind,
  ...KINDS[kind].names,
}));

/** @throws CliError, a usage error that suggests similar names */
export function kindNamed(text: string): KindName {
  const found = findKind(text);
  if (found !== undefined) return found;
  const names = KIND_NAMES.map(({ plural }) => plural);
  const near = nearest(text, names);
  throw CliError.usage(
    `there is no kind '${text}': ` +
      (near === undefined ? `use one of ${names.join(", ")}` : `did you mean ${near}?`),
  );
}

export function findKind(text: string): KindName | undefined {
  return KIND_NAMES.find(({ singular, plural, short, others = [] }) =>
    [singular, plural, short ?? singular, ...others].some(isNamed(text)),
  );
}

export function kindName(kind: ResourceKind): KindName {
  const found = KIND_NAMES.find((entry) => entry.kind === kind);
  if (found === undefined) throw new Error(`no name for the kind ${kind}`);
  return found;
}

/** Returns whether a name is the one that a user typed. */
function isNamed(text: string): (name: string) => boolean {
  const plain = text.toLowerCase().replaceAll("-", "");
  return (name) => name.replaceAll("-", "") === plain;
}
