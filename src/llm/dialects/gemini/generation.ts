/** Differences between generations of Gemini models, by their names. */
/** 3 for `gemini-3-pro-preview` and for unknown names, which are assumed to be new models. */
export function generationOf(model: string): number {
  const match = /gemini-(\d+)/.exec(model);
  return match === null ? 3 : Number(match[1]);
}
