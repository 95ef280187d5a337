/** Handles the request fields that a translation cannot express. */
import { type ChangeLog, unsupported } from "./changes.ts";
import type { Leftover } from "./model.ts";

/**
 * Field pattern (`messages[].name`) -> reason why it may be dropped. Also rendered in
 * docs/translation.md.
 */
export type DropTable = Readonly<Record<string, string>>;

/** Indexes do not affect whether a field is dropped. */
function reasonIn(table: DropTable, param: string): string | undefined {
  const pattern = param.replace(/\[\d+\]/g, "[]");
  return Object.hasOwn(table, pattern) ? table[pattern] : undefined;
}

/**
 * Drops fields that do not change the meaning of the conversation.
 *
 * @throws BadRequestError naming the first field that must not be lost
 */
export function settleLeftovers(
  leftovers: readonly Leftover[],
  table: DropTable,
  target: string,
  changes: ChangeLog,
): void {
  const why = `has no equivalent at ${target}`;
  for (const { param, essential, reason: always } of leftovers) {
    const isNamed = essential || !changes.isFull;
    const reason = always ?? (isNamed ? reasonIn(table, param) : undefined);
    if (reason !== undefined) changes.drop(param, reason);
    else if (essential) throw unsupported(param, why);
    else changes.lose(param, why);
  }
}

/** Returns fields with the reasons of their own dialect, which hold for every target. */
export function withReasons(leftovers: readonly Leftover[], table: DropTable): Leftover[] {
  return leftovers.map((leftover) => ({ ...leftover, reason: reasonIn(table, leftover.param) }));
}
