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

const ALL_NAMES: readonly KindName[] = RESOURCE_KINDS.map((kind) => ({
  kind,
  ...KINDS[kind].names,
}));

/** Names of the kinds that `svc up` reads. */
export const KIND_NAMES: readonly KindName[] = ALL_NAMES.filter(isSupported);

/** @throws CliError, a usage error that suggests similar names */
export function kindNamed(text: string): KindName {
  const found = findKind(text);
  if (found !== undefined) {
    if (!isSupported(found)) throw new CliError(`the kind '${text}' is not supported yet`);
    return found;
  }
  const names = KIND_NAMES.map(({ plural }) => plural);
  const near = nearest(text, names);
  throw CliError.usage(
    `there is no kind '${text}': ` +
      (near === undefined ? `use one of ${names.join(", ")}` : `did you mean ${near}?`),
  );
}

export function findKind(text: string): KindName | undefined {
  return ALL_NAMES.find(({ singular, plural, short }) =>
    [singular, plural, short ?? singular].some(isNamed(text)),
  );
}

export function kindName(kind: ResourceKind): KindName {
  const found = ALL_NAMES.find((entry) => entry.kind === kind);
  if (found === undefined) throw new Error(`no name for the kind ${kind}`);
  return found;
}

/** Returns whether a name is the one that a user typed. */
function isNamed(text: string): (name: string) => boolean {
  const plain = text.toLowerCase().replaceAll("-", "");
  return (name) => name.replaceAll("-", "") === plain;
}

function isSupported({ kind }: KindName): boolean {
  return KINDS[kind].readers.includes("machine");
}
