/**
 * Interprets names of parameters as various servers do. Servers differ: some decode a name again,
 * some treat a plus as a space or a `;` as a separator, some ignore case, and some treat `name[]`
 * and `na.me` as `name` and `na_me`.
 */

/** More rounds of percent-encoding than this indicate an attempt to hide something. */
const MAX_ROUNDS = 4;

export interface ParameterName {
  /** The name as on the wire. */
  readonly raw: string;
  /** Whether the name follows a `;` instead of beginning a parameter. */
  readonly inside: boolean;
}

/** Yields every name that a server may find in a query or a form. */
export function* parameterNames(text: string): Generator<ParameterName> {
  if (text === "") return;
  for (const part of text.split("&"))
    for (const [index, piece] of part.split(";").entries()) {
      const equals = piece.indexOf("=");
      yield { raw: equals < 0 ? piece : piece.slice(0, equals), inside: index > 0 };
    }
}

/**
 * Returns the normalized forms that servers may derive from a name: lower-case, with `_` for every
 * other separator. Returns undefined if it is encoded too often or is not text, so that its meaning
 * is unknown.
 */
export function readingsOf(raw: string): ReadonlySet<string> | undefined {
  if (/^[A-Za-z0-9_]*$/.test(raw)) return new Set([raw.toLowerCase()]);
  const readings = new Set<string>();
  let current = raw;
  for (let round = 0; round <= MAX_ROUNDS; round += 1) {
    readings.add(folded(current));
    const next = decodedOnce(current);
    if (next === undefined) return undefined;
    if (next === current) return readings;
    current = next;
  }
  return undefined;
}

/**
 * Normalizes a name: lower-case, without brackets and invisible characters, and with `_` for every
 * other separator.
 */
export function folded(name: string): string {
  return name
    .normalize("NFKC")
    .replace(/[\p{Cc}\p{Default_Ignorable_Code_Point}]/gu, "")
    .replace(/^[\s?&]+/, "")
    .replace(/\[.*$/s, "")
    .trimEnd()
    .toLowerCase()
    .replace(/[-.\s]/g, "_");
}

/** Returns undefined if the bytes are not UTF-8. */
function decodedOnce(text: string): string | undefined {
  const spaced = text.replaceAll("+", " ");
  if (!spaced.includes("%")) return spaced;
  const wide = spaced.replace(/%u([0-9A-Fa-f]{4})/g, (_all, hex: string) =>
    encodeURIComponent(String.fromCharCode(Number.parseInt(hex, 16)).toWellFormed()),
  );
  // Text that is not an escape stays unchanged.
  const escaped = wide.replace(/%(?![0-9A-Fa-f]{2})/g, "%25");
  try {
    return decodeURIComponent(escaped);
  } catch {
    return undefined;
  }
}
