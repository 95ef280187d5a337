import { expect, test } from "vitest";
import { formatSize, parseSize } from "./size.ts";

test.each([
  ["0", 0],
  ["1048576", 1_048_576],
  ["12B", 12],
  ["512MiB", 536_870_912],
  ["1.5GiB", 1_610_612_736],
  ["2TiB", 2_199_023_255_552],
])("%s is %i bytes", (text, bytes) => expect(parseSize(text)).toBe(bytes));

test.each([
  "",
  "MiB",
  "-1",
  "1 MiB",
  "1MB",
  "1mib",
  "1e9",
  "0x10",
  "1.MiB",
  "∞",
  "999999999999TiB",
])("%j is no size", (text) => expect(parseSize(text)).toBeUndefined());

test.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1024, "1.0 KiB"],
  [81_500_000_000, "75.9 GiB"],
  [5 * 1024 ** 5, "5120.0 TiB"],
])("%i bytes are %s", (bytes, text) => expect(formatSize(bytes)).toBe(text));
