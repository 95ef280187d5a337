/** An upstream's error body in the client's shape: status and message kept, keys redacted. */
import { parseError as parseAnthropic } from "./anthropic/errors.ts";
import type { Dialect, DialectName } from "./dialect.ts";
import { parseError as parseGemini } from "./gemini/errors.ts";
import type { UpstreamError } from "./model.ts";
import { isNativeError, parseError as parseOpenai } from "./openai/errors.ts";
import { redactSecrets } from "./redact.ts";

type ErrorParser = (status: number, body: unknown) => UpstreamError | undefined;

const PARSERS: Readonly<Record<DialectName, ErrorParser>> = {
  openai: parseOpenai,
  anthropic: parseAnthropic,
  gemini: parseGemini,
};

/**
 * Maximum length of a plain-text error: a proxy's HTML page may be long and does not help a client.
 */
const LONGEST_PLAIN_TEXT = 500;

export interface ErrorTranslation {
  readonly upstream: DialectName;
  readonly client: Dialect;
  readonly status: number;
  readonly body: Buffer;
}

export function translateErrorBody({ upstream, client, status, body }: ErrorTranslation): {
  status: number;
  body: Buffer;
} {
  const text = body.toString("utf8");
  const parsed = parseJson(text);
  // Servers and proxies in front of an upstream may use other error formats: its dialect is only
  // the first guess.
  const native = PARSERS[upstream](status, parsed);
  if (
    native !== undefined &&
    upstream === client.name &&
    (upstream !== "openai" || isNativeError(parsed))
  ) {
    const redacted = redactSecrets(text);
    return { status, body: redacted === text ? body : Buffer.from(redacted, "utf8") };
  }
  const error = native ?? guess(status, parsed) ?? fromText(status, text);
  const { code, param } = error;
  return {
    status,
    body: Buffer.from(
      client.renderError({ status, code, message: redactSecrets(error.message), param }),
      "utf8",
    ),
  };
}

function guess(status: number, parsed: unknown): UpstreamError | undefined {
  return (
    parseAnthropic(status, parsed) ?? parseGemini(status, parsed) ?? parseOpenai(status, parsed)
  );
}

function fromText(status: number, text: string): UpstreamError {
  const plain = text.trim();
  const quotable = plain !== "" && plain.length <= LONGEST_PLAIN_TEXT && !plain.startsWith("<");
  const message = quotable ? plain : `the upstream answered with status ${status}`;
  return { status, code: "upstream_error", message, param: undefined };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
