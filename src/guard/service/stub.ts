/** The classifier for tests and first trials: it searches for substrings. */
import type { Scores } from "../protocol.ts";
import type { Classifier } from "./classifier.ts";

/** Default of `SVC_GUARD_STUB_INJECTION`. */
export const STUB_SUBSTRINGS =
  "ignore previous instructions,disregard prior,system prompt override";

const INJECTION: Scores = { benign: 0, injection: 1, jailbreak: 0 };
const BENIGN: Scores = { benign: 1, injection: 0, jailbreak: 0 };

/**
 * @param list comma-separated substrings, compared without regard to case. White space around them
 * is not part of them, and empty ones are ignored
 */
export function stubClassifier(list: string = STUB_SUBSTRINGS): Classifier {
  const substrings = list
    .split(",")
    .map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== "");
  return {
    type: "stub",
    model: undefined,
    classify: (text) => {
      const lower = text.toLowerCase();
      return Promise.resolve(
        substrings.some((substring) => lower.includes(substring)) ? INJECTION : BENIGN,
      );
    },
    close: () => Promise.resolve(),
  };
}
