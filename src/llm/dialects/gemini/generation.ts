/** What differs between generations of Gemini models, told from their names. */
/** 3 for `gemini-3-pro-preview` and for names that say nothing, as new names are new models. */
export function generationOf(model: string): number {
  const match = /gemini-(\d+)/.exec(model);
  return match === null ? 3 : Number(match[1]);
}
