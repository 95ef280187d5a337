/**
 * Longest work on one body without a break, in milliseconds: then other requests get their turn.
 */
export const TURN_MS = 10;
