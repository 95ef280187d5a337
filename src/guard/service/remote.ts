/** Classifiers that ask an endpoint: Llama Guard's, or one of the same protocol as ours. */
import {
  type LlamaGuardCategories,
  llamaGuardRequest,
  parseLlamaGuardAnswer,
} from "../llama-guard.ts";
import { type Scores, parseAnswer } from "../protocol.ts";
import { type Classifier, ClassifierError } from "./classifier.ts";
import { combine, NOTHING } from "./combine.ts";
import { type ClassifierEndpoint, postJson } from "./endpoint.ts";
import { overlapping } from "./pieces.ts";

export interface LlamaGuardOptions {
  readonly endpoint: ClassifierEndpoint;
  /** Name of the model at the endpoint. */
  readonly model: string;
  readonly categories: LlamaGuardCategories;
  /** UTF-16 code units of a text that are sent at once. */
  readonly pieceChars: number;
}

/** Overlap of the pieces of a long text, as a fraction of their length. */
const OVERLAP = 1 / 8;

/**
 * Sends a long text in overlapping pieces, one after the other: a text that is longer than the
 * model's context would get no answer, and an attacker could make it so long. The first piece that
 * is an attack decides.
 */
export function llamaGuardClassifier(options: LlamaGuardOptions): Classifier {
  const { endpoint, model, categories, pieceChars } = options;
  return {
    type: "llamaGuard",
    model,
    classify: async (text, signal) => {
      let scores: Scores | undefined;
      for (const piece of overlapping(text, pieceChars, Math.floor(pieceChars * OVERLAP))) {
        const body = await postJson(endpoint, llamaGuardRequest(piece, model), signal);
        const found = parseLlamaGuardAnswer(body, categories);
        if (found === undefined)
          throw new ClassifierError(502, "the endpoint's answer is not one of Llama Guard");
        scores = combine(scores, found);
        if (scores.benign === 0) break;
      }
      return scores ?? NOTHING;
    },
    close: () => Promise.resolve(),
  };
}

export function customClassifier(
  endpoint: ClassifierEndpoint,
  model: string | undefined,
): Classifier {
  return {
    type: "custom",
    model,
    classify: async (text, signal) => {
      const scores = parseAnswer(await postJson(endpoint, { text }, signal));
      if (scores === undefined)
        throw new ClassifierError(
          502,
          "the endpoint's answer is not {label, score, labels: {benign, injection, jailbreak}} " +
            "with scores from 0 to 1",
        );
      return scores;
    },
    close: () => Promise.resolve(),
  };
}
