import { clientText } from "./client-text.ts";

/**
 * LabelBound limits the number of values of a metric label: each value is stored as {@link
 * clientText}, each group (a provider, a binding) has a maximum number of values, and further
 * values become `other`.
 */
export const OTHER = "other";

export class LabelBound {
  readonly #maxValues: number;
  readonly #values = new Map<string, Set<string>>();

  /** @param maxValues maximum for each group; the configuration bounds the number of groups */
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
