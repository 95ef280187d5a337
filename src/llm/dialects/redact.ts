/** Upstreams echo the refused key, which is the gateway's and must not reach the client. */
const SECRETS =
  /\bsk-[A-Za-z0-9_*.-]{6,}|\bAIza[A-Za-z0-9_*-]{10,}|\bBearer\s+[^\s"'\\,;]+|\bsvcw?_[A-Za-z0-9]{16,}|(?<=[?&]key=)[^&\s"'\\]+/gi;

export function redactSecrets(text: string): string {
  return text.replace(SECRETS, "[redacted]");
}
