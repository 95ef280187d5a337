/** Names of tools, prompts and resources in comparisons that somebody tries to get around. */

/** Characters that are not shown: formats, controls, and combining marks without a base. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Z}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Returns the form in which names are compared where a difference must not help: compatibility
 * forms (NFKC) without regard to case, without spaces and invisible characters.
 */
export function fold(name: string): string {
  const plain = name.normalize("NFKC").replaceAll(INVISIBLE, "").toLowerCase();
  // Lower case may produce what NFKC changes again, e.g. for the Turkish dotted I.
  return plain.normalize("NFKC");
}

/** Printable ASCII without spaces: what names of tools consist of (2025-11-25, section Tools). */
const PLAIN = /^[\x21-\x7e]+$/;

/** Returns whether a name has only characters that no other character resembles. */
export function isPlain(name: string): boolean {
  return PLAIN.test(name);
}

/** Most rounds of percent decoding that a URI gets. */
const MAX_DECODINGS = 4;

/**
 * Returns the forms in which a server might read a URI: as it is, decoded, and normalised as the
 * URL standard does (`..` resolved, scheme and host in lower case).
 */
export function formsOfUri(uri: string): readonly string[] {
  const forms = new Set([uri]);
  let decoded = uri;
  for (let round = 0; round < MAX_DECODINGS; round += 1) {
    const next = decode(decoded);
    if (next === decoded) break;
    decoded = next;
    forms.add(decoded);
  }
  for (const form of Array.from(forms)) {
    const slashes = form.replaceAll("\\", "/");
    forms.add(slashes);
    const url = URL.parse(slashes);
    if (url !== null) {
      forms.add(url.href);
      forms.add(decode(url.href));
    }
  }
  return [...forms];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // Escapes that are not UTF-8 stay; the others are decoded.
    return text.replaceAll(/%([0-7][0-9A-Fa-f])/g, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  }
}
