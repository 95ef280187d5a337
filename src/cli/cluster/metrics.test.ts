import { expect, test } from "vitest";
import { mergeMetrics } from "./metrics.ts";

const text = (value: number): string =>
  `# HELP a_total Help.\n# TYPE a_total counter\na_total{x="1"} ${value}\na_total ${value}\n` +
  `# HELP h Help.\n# TYPE h histogram\nh_bucket{le="1"} ${value}\nh_sum ${value}\nh_count 1\n`;

test("each sample gets its pod, and families stay together", () => {
  const merged = mergeMetrics(
    new Map([
      ["p1", text(1)],
      ["p2", text(2)],
    ]),
  );
  expect(merged.split("\n")).toEqual([
    "# HELP a_total Help.",
    "# TYPE a_total counter",
    'a_total{pod="p1",x="1"} 1',
    'a_total{pod="p1"} 1',
    'a_total{pod="p2",x="1"} 2',
    'a_total{pod="p2"} 2',
    "# HELP h Help.",
    "# TYPE h histogram",
    'h_bucket{pod="p1",le="1"} 1',
    'h_sum{pod="p1"} 1',
    'h_count{pod="p1"} 1',
    'h_bucket{pod="p2",le="1"} 2',
    'h_sum{pod="p2"} 2',
    'h_count{pod="p2"} 1',
    "",
  ]);
});
