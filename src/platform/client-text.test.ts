import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  clientText,
  clientTexts,
  cutText,
  LONGEST,
  MAX_CLIENT_LIST,
  MAX_CLIENT_TEXT,
} from "./client-text.ts";

const sha256 = (text: string): string =>
  createHash("sha256").update(text, "utf8").digest("hex").slice(0, 32);

/** Returns the text that an untruncated stored form represents. */
const readBack = (stored: string): string =>
  stored.replaceAll(/\\(?:\\|u\{([0-9a-f]+)\})/g, (_whole, hex: string | undefined) =>
    hex === undefined ? "\\" : String.fromCodePoint(Number.parseInt(hex, 16)),
  );

describe("text that fits", () => {
  test.each([
    "",
    "gpt-5",
    "/v1/models/a b?c={d}&e='f'\"~",
    "x".repeat(MAX_CLIENT_TEXT),
    "日本 ü 🙂",
  ])("%j stays as it is", (text) => expect(clientText(text)).toBe(text));

  test.each([
    ["a line break", "a\r\nb", "a\\u{d}\\u{a}b"],
    ["an escape sequence", "\u001b[2J", "\\u{1b}[2J"],
    ["a C1 control", "\u009b31m", "\\u{9b}31m"],
    ["text that runs backwards", "a\u202etxt.exe", "a\\u{202e}txt.exe"],
    ["a zero-width space", "a\u200bb", "a\\u{200b}b"],
    ["a line separator", "a\u2028b", "a\\u{2028}b"],
    ["a lone surrogate", "a\ud83dz", "a\\u{d83d}z"],
    ["NUL", "a\0b", "a\\u{0}b"],
    ["a tag character outside of the first plane", "a\u{e0041}b", "a\\u{e0041}b"],
  ])("%s is escaped", (_name, text, stored) => {
    expect(clientText(text)).toBe(stored);
    expect(readBack(stored)).toBe(text);
  });

  test("an escape that the client wrote itself is told from one of ours", () => {
    expect(clientText("\n")).toBe("\\u{a}");
    expect(clientText("\\u{a}")).toBe("\\\\u{a}");
    expect(readBack(clientText("\\u{a}"))).toBe("\\u{a}");
  });
});

describe("text that is too long", () => {
  test("is cut to 256 characters and the hash of the whole", () => {
    const text = "p".repeat(1_000);
    expect(clientText(text)).toBe(`${"p".repeat(256)}…sha256:${sha256(text)}`);
    expect(clientText("x".repeat(257))).toBe(
      `${"x".repeat(256)}…sha256:${sha256("x".repeat(257))}`,
    );
  });

  test("two that differ after the cut differ in the hash", () => {
    const common = "p".repeat(256);
    expect(clientText(`${common}a`)).not.toBe(clientText(`${common}b`));
  });

  test("never within an escape, nor within a character", () => {
    const text = `${"x".repeat(253)}\n${"y".repeat(9)}`;
    expect(clientText(text)).toBe(`${"x".repeat(253)}…sha256:${sha256(text)}`);
    const wide = `${"x".repeat(255)}🙂`;
    expect(clientText(wide)).toBe(`${"x".repeat(255)}…sha256:${sha256(wide)}`);
  });

  test.each([
    ["control characters", "\u0000".repeat(100_000)],
    ["backslashes", "\\".repeat(100_000)],
    ["the highest code points", "\u{10ffff}".repeat(100_000)],
    ["ellipses", "…".repeat(100_000)],
  ])("however much its characters grow when they are escaped: %s", (_name, text) => {
    expect(clientText(text).length).toBeLessThanOrEqual(LONGEST);
  });

  test("is not walked to its end but for the hash", () => {
    let steps = 0;
    const counting = {
      *[Symbol.iterator]() {
        for (;;) {
          steps += 1;
          yield "x";
        }
      },
    } as unknown as string;
    expect(() => cutText(counting, 256)).toThrow();
    expect(steps).toBe(257);
  });
});

describe("text that wants to look like a cut one", () => {
  const real = clientText("p".repeat(1_000));

  test.each([
    ["the whole form", real],
    ["a short one", `gpt-5…sha256:${"0".repeat(32)}`],
    ["of the right length", `${"p".repeat(200)}…sha256:${"0".repeat(32)}`],
    ["with its ellipsis escaped as we do it", `p\\u{2026}sha256:${"0".repeat(32)}`],
    ["three dots", `p...sha256:${"0".repeat(32)}`],
    ["another ellipsis", `p⋯sha256:${"0".repeat(32)}`],
  ])("%s", (_name, text) => {
    const stored = clientText(text);
    const cut = /…sha256:[0-9a-f]{32}$/.test(stored);
    // The forged text has an ellipsis only where our code truncated it, with its own hash.
    if (cut) expect(stored.endsWith(`…sha256:${sha256(text)}`)).toBe(true);
    else expect(stored).not.toContain("…");
    expect(stored.split("…").length - 1).toBe(cut ? 1 : 0);
  });

  test("different texts have different forms, whatever they are made of", () => {
    const parts = ["a", "\\", "…", "\n", "u{a}", "sha256:", "\u200b"];
    const texts = parts.flatMap((a) => parts.flatMap((b) => parts.map((c) => a + b + c)));
    const distinct = new Set(texts);
    expect(new Set([...distinct].map(clientText)).size).toBe(distinct.size);
  });
});

describe("lists", () => {
  test("a short one is stored whole, its entries as texts", () => {
    expect(clientTexts(["a", "b\n"])).toEqual(["a", "b\\u{a}"]);
    const full = Array.from({ length: MAX_CLIENT_LIST }, (_, i) => `r${i}`);
    expect(clientTexts(full)).toEqual(full);
  });

  test("of a long one the first entries, and what is missing", () => {
    const values = Array.from({ length: 10_000 }, (_, i) => `r${i}`);
    const stored = clientTexts(values);
    expect(stored.slice(0, -1)).toEqual(values.slice(0, MAX_CLIENT_LIST));
    expect(stored.at(-1)).toBe(`…9980 more, sha256:${sha256(JSON.stringify(values))}`);
  });

  test("of a list with long entries as many as have 128 Ki characters together", () => {
    const values = Array.from({ length: 5_000 }, (_, i) => `${i}${"\\".repeat(300)}`);
    const stored = clientTexts(values, 1_000);
    const shown = stored.slice(0, -1);
    expect(shown).toEqual(values.slice(0, shown.length).map(clientText));
    expect(shown.join("").length).toBeLessThanOrEqual(128 * 1024);
    expect(shown.join("").length).toBeGreaterThan(127 * 1024);
    expect(stored.at(-1)).toMatch(new RegExp(`^…${5_000 - shown.length} more, sha256:`));
  });

  test("an entry cannot pose as the last one", () => {
    expect(clientTexts(["…9980 more, sha256:0"])[0]).toBe("\\u{2026}9980 more, sha256:0");
  });
});
