/** Maps effort levels to thinking budgets, by the table of Google's OpenAI-compatible endpoint. */
import type { Effort } from "./model.ts";

const BUDGETS: Readonly<Record<Effort, number>> = {
  minimal: 1024,
  low: 1024,
  medium: 8192,
  high: 24576,
  xhigh: 24576,
  max: 24576,
};

export function budgetOf(effort: Effort): number {
  return BUDGETS[effort];
}

/** Returns the nearest effort, or the lower one at the half-way points of the table. */
export function effortOf(budget: number): "low" | "medium" | "high" {
  if (budget <= 4096) return "low";
  return budget <= 16384 ? "medium" : "high";
}
