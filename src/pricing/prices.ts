/**
 * The shipped price table: US dollars per million tokens, standard tier, text. Maintained by hand.
 * Each block names the vendor's page, against which a figure must be checked, and the date of its
 * sources: release notes and collected price data, not the page itself. Batch, priority and
 * regional surcharges, audio and image tokens, tool fees and cache storage are not in it.
 */
import type { PriceEntry, PriceTable } from "./price-book.ts";

export interface PriceSource {
  readonly vendor: string;
  /** The vendor's own page. */
  readonly url: string;
  /** Day of the newest source of the figures, YYYY-MM-DD. */
  readonly date: string;
  readonly models: Readonly<Record<string, PriceEntry>>;
}

/**
 * Above 272,000 input tokens, the whole request costs twice the price for input and caches, and 1.5
 * times the price for output.
 */
const OPENAI_LONG = { above: 272_000, inputPercent: 200, outputPercent: 150 };

/** The same above 200,000 input tokens, for Gemini's Pro models. */
const GEMINI_LONG = { above: 200_000, inputPercent: 200, outputPercent: 150 };

const OPENAI: PriceSource = {
  vendor: "OpenAI",
  url: "https://developers.openai.com/api/docs/pricing",
  date: "2026-11-18",
  models: {
    "gpt-6.2-astra": {
      input: "8.00",
      cachedInput: "0.40",
      cacheWrite5m: "10.00",
      output: "40.00",
      longPrompt: OPENAI_LONG,
    },
    "gpt-6.2-sol": {
      input: "2.00",
      cachedInput: "0.10",
      cacheWrite5m: "2.50",
      output: "10.00",
      longPrompt: OPENAI_LONG,
    },
    "gpt-6.1-sol": {
      input: "2.00",
      cachedInput: "0.10",
      cacheWrite5m: "2.50",
      output: "10.00",
      longPrompt: OPENAI_LONG,
    },
    "gpt-6.1-terra": {
      input: "1.00",
      cachedInput: "0.05",
      cacheWrite5m: "1.25",
      output: "5.00",
      longPrompt: OPENAI_LONG,
    },
    "gpt-6-astra": {
      input: "10.00",
      cachedInput: "1.00",
      cacheWrite5m: "12.50",
      output: "50.00",
      longPrompt: OPENAI_LONG,
    },
    "gpt-6-sol": {
      input: "2.00",
      cachedInput: "0.20",
      cacheWrite5m: "2.50",
      output: "10.00",
      longPrompt: OPENAI_LONG,
    },
    "gpt-6-luna": {
      input: "0.10",
      cachedInput: "0.01",
      cacheWrite5m: "0.125",
      output: "0.50",
      longPrompt: OPENAI_LONG,
    },
    "gpt-5.6-sol": { input: "4.00", cachedInput: "0.40", output: "20.00", longPrompt: OPENAI_LONG },
    "gpt-5.6-terra": {
      input: "2.00",
      cachedInput: "0.20",
      output: "12.00",
      longPrompt: OPENAI_LONG,
    },
    "gpt-5.6-luna": { input: "0.20", cachedInput: "0.02", output: "1.20", longPrompt: OPENAI_LONG },
    "gpt-5.5": { input: "5.00", cachedInput: "0.50", output: "30.00", longPrompt: OPENAI_LONG },
    "gpt-5.5-pro": { input: "30.00", output: "180.00", longPrompt: OPENAI_LONG },
    "gpt-5.4": { input: "2.50", cachedInput: "0.25", output: "15.00", longPrompt: OPENAI_LONG },
    "gpt-5.4-mini": { input: "0.75", cachedInput: "0.075", output: "4.50" },
    "gpt-5.4-nano": { input: "0.20", cachedInput: "0.02", output: "1.25" },
    "gpt-5.4-pro": { input: "30.00", output: "180.00", longPrompt: OPENAI_LONG },
    "gpt-5.3-codex": { input: "1.75", cachedInput: "0.175", output: "14.00" },
    "gpt-5.2": { input: "1.75", cachedInput: "0.175", output: "14.00" },
    "gpt-5.2-pro": { input: "21.00", output: "168.00" },
    "gpt-5.1": { input: "1.25", cachedInput: "0.125", output: "10.00" },
    "gpt-5": { input: "1.25", cachedInput: "0.125", output: "10.00" },
    "gpt-5-mini": { input: "0.25", cachedInput: "0.025", output: "2.00" },
    "gpt-5-nano": { input: "0.05", cachedInput: "0.005", output: "0.40" },
    "gpt-5-pro": { input: "15.00", output: "120.00" },
    "gpt-4.1": { input: "2.00", cachedInput: "0.50", output: "8.00" },
    "gpt-4.1-mini": { input: "0.40", cachedInput: "0.10", output: "1.60" },
    "gpt-4.1-nano": { input: "0.10", cachedInput: "0.025", output: "0.40" },
    "gpt-4o": { input: "2.50", cachedInput: "1.25", output: "10.00" },
    "gpt-4o-mini": { input: "0.15", cachedInput: "0.075", output: "0.60" },
    o1: { input: "15.00", cachedInput: "7.50", output: "60.00" },
    "o1-pro": { input: "150.00", output: "600.00" },
    o3: { input: "2.00", cachedInput: "0.50", output: "8.00" },
    "o3-pro": { input: "20.00", output: "80.00" },
    "o3-mini": { input: "1.10", cachedInput: "0.55", output: "4.40" },
    "o4-mini": { input: "1.10", cachedInput: "0.275", output: "4.40" },
    "gpt-3.5-turbo": { input: "0.50", output: "1.50" },
    "text-embedding-3-small": { input: "0.02", output: "0" },
    "text-embedding-3-large": { input: "0.13", output: "0" },
  },
};

const ANTHROPIC: PriceSource = {
  vendor: "Anthropic",
  url: "https://platform.claude.com/docs/en/about-claude/pricing",
  date: "2026-10-24",
  models: {
    "claude-fable-5-1": claude("10.00", "12.50", "20.00", "0.25", "50.00"),
    "claude-mythos-5-1": claude("10.00", "12.50", "20.00", "0.25", "50.00"),
    "claude-fable-5": claude("10.00", "12.50", "20.00", "1.00", "50.00"),
    "claude-mythos-5": claude("10.00", "12.50", "20.00", "1.00", "50.00"),
    "claude-opus-5-5": claude("4.00", "5.00", "8.00", "0.20", "20.00"),
    "claude-opus-5": claude("5.00", "6.25", "10.00", "0.50", "25.00"),
    "claude-opus-4-8": claude("5.00", "6.25", "10.00", "0.50", "25.00"),
    "claude-opus-4-7": claude("5.00", "6.25", "10.00", "0.50", "25.00"),
    "claude-opus-4-6": claude("5.00", "6.25", "10.00", "0.50", "25.00"),
    "claude-opus-4-5": claude("5.00", "6.25", "10.00", "0.50", "25.00"),
    "claude-opus-4-1": claude("15.00", "18.75", "30.00", "1.50", "75.00"),
    "claude-opus-4-0": claude("15.00", "18.75", "30.00", "1.50", "75.00"),
    "claude-opus-4": claude("15.00", "18.75", "30.00", "1.50", "75.00"),
    "claude-sonnet-5-5": claude("2.00", "2.50", "4.00", "0.10", "10.00"),
    "claude-sonnet-5": claude("2.00", "2.50", "4.00", "0.20", "10.00"),
    "claude-sonnet-4-6": claude("3.00", "3.75", "6.00", "0.30", "15.00"),
    "claude-sonnet-4-5": claude("3.00", "3.75", "6.00", "0.30", "15.00"),
    "claude-sonnet-4-0": claude("3.00", "3.75", "6.00", "0.30", "15.00"),
    "claude-sonnet-4": claude("3.00", "3.75", "6.00", "0.30", "15.00"),
    "claude-3-7-sonnet": claude("3.00", "3.75", "6.00", "0.30", "15.00"),
    "claude-haiku-5-5": {
      ...claude("0.10", "0.125", "0.20", "0.01", "0.50"),
      longPrompt: { above: 100_000, inputPercent: 500, outputPercent: 500 },
    },
    "claude-haiku-4-5": claude("1.00", "1.25", "2.00", "0.10", "5.00"),
    "claude-3-5-haiku": claude("0.80", "1.00", "1.60", "0.08", "4.00"),
    "claude-3-haiku": claude("0.25", "0.30", "0.50", "0.03", "1.25"),
  },
};

/**
 * Prices of the 3.6 to 3.8 Flash models double on 2027-01-01, those of gemini-4-argon on
 * 2026-12-01.
 */
const GEMINI: PriceSource = {
  vendor: "Google",
  url: "https://ai.google.dev/gemini-api/docs/pricing",
  date: "2026-10-13",
  models: {
    "gemini-4-argon": { input: "2.00", cachedInput: "0.10", output: "10.00" },
    "gemini-3.8-flash": { input: "0.75", cachedInput: "0.075", output: "3.75" },
    "gemini-3.7-flash": { input: "0.75", cachedInput: "0.075", output: "3.75" },
    "gemini-3.6-flash": { input: "0.75", cachedInput: "0.075", output: "3.75" },
    "gemini-3.5-flash": { input: "1.50", cachedInput: "0.15", output: "9.00" },
    "gemini-3.5-flash-lite": { input: "0.30", output: "2.50" },
    "gemini-3.1-pro-preview": {
      input: "2.00",
      cachedInput: "0.20",
      output: "12.00",
      longPrompt: GEMINI_LONG,
    },
    "gemini-3.1-flash-lite": { input: "0.25", cachedInput: "0.025", output: "1.50" },
    "gemini-2.5-pro": {
      input: "1.25",
      cachedInput: "0.125",
      output: "10.00",
      longPrompt: GEMINI_LONG,
    },
    "gemini-2.5-flash": { input: "0.30", cachedInput: "0.03", output: "2.50" },
    "gemini-2.5-flash-lite": { input: "0.10", cachedInput: "0.01", output: "0.40" },
  },
};

export const PRICE_SOURCES: readonly PriceSource[] = [OPENAI, ANTHROPIC, GEMINI];

/**
 * The whole table; a model's dated snapshots (`gpt-5-2025-08-07`, `claude-opus-4-5-20251101`) cost
 * the same as the model.
 */
export const SHIPPED_PRICES: PriceTable = Object.fromEntries(
  PRICE_SOURCES.flatMap(({ models }) =>
    Object.entries(models).flatMap(([model, price]): [string, PriceEntry][] => [
      [model, price],
      [`${model}-20*`, price],
    ]),
  ),
);

/** The columns of Anthropic's page, in its order. */
function claude(
  input: string,
  cacheWrite5m: string,
  cacheWrite1h: string,
  cachedInput: string,
  output: string,
): PriceEntry {
  return { input, cacheWrite5m, cacheWrite1h, cachedInput, output };
}
