/** Token counts as vendors write them: absent, null, and sometimes not a number. */
export function count(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.round(value) : 0;
}
