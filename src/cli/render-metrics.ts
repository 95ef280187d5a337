/**
 * Formats Prometheus' text for people: the gateway's own families, one line per sample, histograms
 * as count and mean.
 */
import { table } from "./table.ts";

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Format: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format */
export function parseMetrics(text: string): readonly Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)(?: \d+)?$/.exec(line);
    if (match === null) continue;
    const [, name = "", labels = "", value = ""] = match;
    samples.push({ name, labels: parseLabels(labels), value: Number(value) });
  }
  return samples;
}

/**
 * @param prefixes of the families to show; the gateway's own if none is given @returns text with
 * its final newline
 */
export function renderMetrics(
  text: string,
  output: "table" | "wide" | "json",
  prefixes: readonly string[],
): string {
  if (output === "wide") return text.endsWith("\n") ? text : `${text}\n`;
  const wanted = prefixes.length === 0 ? ["svc_"] : prefixes;
  const samples = parseMetrics(text).filter(({ name }) =>
    wanted.some((prefix) => name.startsWith(prefix)),
  );
  if (output === "json") return `${JSON.stringify(samples, null, 2)}\n`;
  if (samples.length === 0) return "No metrics yet.\n";
  return `${table(["METRIC", "LABELS", "VALUE"], rows(samples))}\n`;
}

function rows(samples: readonly Sample[]): string[][] {
  const histograms = new Set(
    samples
      .filter(({ name }) => name.endsWith("_bucket"))
      .map(({ name }) => name.slice(0, -"_bucket".length)),
  );
  const sums = new Map(
    samples
      .filter(({ name }) => name.endsWith("_sum"))
      .map((sample) => [`${sample.name.slice(0, -4)} ${labelText(sample.labels)}`, sample.value]),
  );
  return samples.flatMap(({ name, labels, value }) => {
    const family = name.replace(/_(?:bucket|sum|count)$/, "");
    if (!histograms.has(family)) return [[name, labelText(labels), number(value)]];
    if (!name.endsWith("_count")) return [];
    const sum = sums.get(`${family} ${labelText(labels)}`) ?? 0;
    return [
      [
        family,
        labelText(labels),
        value === 0 ? "0" : `${number(value)}, mean ${number(sum / value)}`,
      ],
    ];
  });
}

function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

function number(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
}

function parseLabels(text: string): Readonly<Record<string, string>> {
  const labels: Record<string, string> = {};
  for (const [, name = "", value = ""] of text.matchAll(
    /,?([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/gy,
  )) {
    labels[name] = value.replace(/\\(.)/g, (_all, escaped: string) =>
      escaped === "n" ? "\n" : escaped,
    );
  }
  return labels;
}
