/** `<kind> <name>...`, or `<kind>/<name>...` as `-o name` prints it. */
import { CliError } from "./errors.ts";
import { type KindName, kindNamed } from "./kinds.ts";

export interface ObjectArguments {
  readonly kind: KindName;
  readonly names: readonly string[];
}

/** @throws CliError, a usage error */
export function objectArguments(first: string, rest: readonly string[]): ObjectArguments {
  if (!first.includes("/")) return { kind: kindNamed(first), names: rest };
  const pairs = [first, ...rest].map((text) => {
    const [kind, name, ...more] = text.split("/");
    if (kind === undefined || name === undefined || name === "" || more.length > 0)
      throw CliError.usage(`'${text}' is not <kind>/<name>`);
    return { kind: kindNamed(kind), name };
  });
  const kind = (pairs[0] as { kind: KindName }).kind;
  if (pairs.some((pair) => pair.kind !== kind)) throw CliError.usage("name objects of one kind");
  return { kind, names: pairs.map((pair) => pair.name) };
}
