/** Returns a text for the content of an XML element. */
export function escapeXml(text: string): string {
  // XML 1.0 does not allow control characters, escaped or not.
  return text
    .replaceAll(/\p{Cc}/gu, " ")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}
