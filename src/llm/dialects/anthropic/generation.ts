/** Differences between generations of Claude models, by their names. */

/**
 * Before 4.6, Claude expects a thinking budget; from then on `adaptive` with an effort, and from
 * 4.7 on it refuses a budget. An unknown name counts as a new model.
 */
export function thinksAdaptively(model: string): boolean {
  const old = /claude-(?:3|(?:opus|sonnet|haiku)-4(?:[-.](\d{1,2}))?(?!\d))/.exec(model);
  if (old === null) return true;
  return old[1] !== undefined && Number(old[1]) >= 6;
}
