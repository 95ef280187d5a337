/** Forms in which a response could echo an injected credential. */
import type { Injection, ProviderPlugin } from "../providers/contract.ts";

/** Signed requests carry their time among the credentials (AWS Signature Version 4). */
const TIME = /^\d{8}T\d{6}Z$/;

/**
 * Returns the values as they are sent, without their scheme (`Bearer`), and the password of Basic
 * credentials (RFC 7617); query parameters also percent-encoded. Any longer echo contains one of
 * these. None contains a line break.
 */
export function credentialTexts(
  { set, setQuery }: Pick<Injection, "set" | "setQuery">,
  {
    credentialHeaders,
    credentialQuery,
  }: Pick<ProviderPlugin, "credentialHeaders" | "credentialQuery">,
): readonly string[] {
  const headers = set.flatMap(([name, value]) =>
    credentialHeaders.includes(name) ? textsOfHeader(value) : [],
  );
  const query = setQuery.flatMap(([name, value]) =>
    credentialQuery.includes(name) ? [value, encodeURIComponent(value)] : [],
  );
  const texts = [...headers, ...query].filter((text) => text !== "" && !TIME.test(text));
  return [...new Set(texts.filter((text) => !/[\r\n]/.test(text)))];
}

function textsOfHeader(value: string): readonly string[] {
  const space = value.search(/\s/);
  if (space < 0) return [value];
  const rest = value.slice(space).trim();
  if (value.slice(0, space).toLowerCase() !== "basic") return [rest];
  const plain = Buffer.from(rest, "base64").toString("latin1");
  return [rest, plain.slice(plain.indexOf(":") + 1)];
}
