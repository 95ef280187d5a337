import { clientText } from "./client-text.ts";

/**
 * LabelBound keeps a label of a metric from growing without end: each value is stored as
 * {@link clientText}, each group (a provider, a binding) has a number of values of its own, and
 * those that come after them are `other`.
 */
export const OTHER = "other";

export class LabelBound {
  readonly #maxValues: number;
  readonly #values = new Map<string, Set<string>>();

  /** @param maxValues of each group; groups come from the configuration, which bounds them */
  constructor(maxValues: number) {
    this.#maxValues = maxValues;
  }

  bound(group: string, text: string): string {
    const value = clientText(text);
    let values = this.#values.get(group);
    if (values === undefined) this.#values.set(group, (values = new Set()));
    if (values.has(value)) return value;
    if (values.size >= this.#maxValues) return OTHER;
    values.add(value);
    return value;
  }
}
