/** Lists of models. */

/**
 * Time at which each listed model was created, in seconds since the epoch. Release dates are not
 * stored: a constant, so that answers are stable.
 */
export const MODEL_CREATED = 1_700_000_000;
