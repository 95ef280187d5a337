/**
 * Handles the request fields that a translation cannot express: dropped if documented, refused
 * otherwise.
 */
import { BadRequestError } from "./dialect.ts";
import type { Leftover } from "./model.ts";

/**
 * Field pattern (`messages[].name`) -> reason why it may be dropped. Also rendered in
 * docs/translation.md.
 */
export type DropTable = Readonly<Record<string, string>>;

/** Indexes do not affect whether a field is dropped. */
function pattern(param: string): string {
  return param.replace(/\[\d+\]/g, "[]");
}

/** @throws BadRequestError naming the first field that must not be lost. */
export function settleLeftovers(
  leftovers: readonly Leftover[],
  table: DropTable,
  target: string,
): string[] {
  return leftovers.map(({ param, reason: always }) => {
    const reason = always ?? table[pattern(param)];
    if (reason === undefined) throw unsupported(param, `has no equivalent at ${target}`);
    return `${param} dropped: ${reason}`;
  });
}

/** Returns fields with the reasons of their own dialect, which hold for every target. */
export function withReasons(leftovers: readonly Leftover[], table: DropTable): Leftover[] {
  return leftovers.map(({ param }) => ({ param, reason: table[pattern(param)] }));
}

export function unsupported(param: string, why: string): BadRequestError {
  return new BadRequestError(
    `${param} ${why}; remove it or choose a model whose provider supports it`,
    param,
    "unsupported_by_upstream",
  );
}
