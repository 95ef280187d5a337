/**
 * Names of parameters as some server or other may read them. Servers differ in what they do to a
 * name: some decode it again, some take a plus for a space or a `;` for the next parameter, some
 * fold case, and some take `name[]` and `na.me` for `name` and `na_me`.
 */

/** More rounds of percent-encoding than these are meant to hide something. */
const MAX_ROUNDS = 4;

export interface ParameterName {
  /** As it is on the wire. */
  readonly raw: string;
  /** Whether it stands behind a `;` and not at the beginning of a parameter. */
  readonly inside: boolean;
}

/** Every name that a query, or a form, may be read to have. */
export function* parameterNames(text: string): Generator<ParameterName> {
  if (text === "") return;
  for (const part of text.split("&"))
    for (const [index, piece] of part.split(";").entries()) {
      const equals = piece.indexOf("=");
      yield { raw: equals < 0 ? piece : piece.slice(0, equals), inside: index > 0 };
    }
}

/**
 * The forms that a name may be read as, folded: lower-case, with `_` for every other separator.
 * Undefined where it is encoded too often, or is no text, so that nobody can say what it is.
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

/** Lower-case, without brackets and what is invisible, and with `_` for every other separator. */
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

/** Undefined where the bytes are no UTF-8. */
function decodedOnce(text: string): string | undefined {
  const spaced = text.replaceAll("+", " ");
  if (!spaced.includes("%")) return spaced;
  const wide = spaced.replace(/%u([0-9A-Fa-f]{4})/g, (_all, hex: string) =>
    encodeURIComponent(String.fromCharCode(Number.parseInt(hex, 16)).toWellFormed()),
  );
  // What is no escape stays as it is.
  const escaped = wide.replace(/%(?![0-9A-Fa-f]{2})/g, "%25");
  try {
    return decodeURIComponent(escaped);
  } catch {
    return undefined;
  }
}
