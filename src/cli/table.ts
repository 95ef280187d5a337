/** Readable tables for a terminal. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const clean = rows.map((row) => row.map(plain));
  const widths = head.map((title, i) =>
    clean.reduce((width, row) => Math.max(width, row[i]?.length ?? 0), title.length),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0)))
      .join("  ")
      .trimEnd();
  return [line(head), ...clean.map(line)].join("\n");
}

/**
 * Escapes foreign text for a terminal, so that it can neither control the terminal, break a line
 * nor change the direction of text.
 */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]+/gu, " ");
}
