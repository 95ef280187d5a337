/** An upstream's error body in the client's shape: status and message kept, keys redacted. */
import type { AnswerFormat } from "./contract.ts";
import type { UpstreamError } from "./model.ts";
import { redactSecrets } from "./redact.ts";

/**
 * Maximum length of a plain-text error: a proxy's HTML page may be long and does not help a client.
 */
const LONGEST_PLAIN_TEXT = 500;

export interface ErrorTranslation {
  readonly upstream: AnswerFormat;
  readonly client: AnswerFormat;
  /** Dialects to try: servers and proxies in front of an upstream may use another one. */
  readonly others: readonly AnswerFormat[];
  readonly status: number;
  readonly body: Buffer;
}

export function translateErrorBody({ upstream, client, others, status, body }: ErrorTranslation): {
  status: number;
  body: Buffer;
} {
  const text = body.toString("utf8");
  const parsed = parseJson(text);
  const native = upstream.parseError(status, parsed);
  if (native !== undefined && upstream === client && upstream.isNativeError(parsed)) {
    const redacted = redactSecrets(text);
    return { status, body: redacted === text ? body : Buffer.from(redacted, "utf8") };
  }
  const error = native ?? guess(others, status, parsed) ?? fromText(status, text);
  const { code, param } = error;
  return {
    status,
    body: Buffer.from(
      client.renderError({ status, code, message: redactSecrets(error.message), param }),
      "utf8",
    ),
  };
}

function guess(
  dialects: readonly AnswerFormat[],
  status: number,
  parsed: unknown,
): UpstreamError | undefined {
  for (const dialect of dialects) {
    const error = dialect.parseError(status, parsed);
    if (error !== undefined) return error;
  }
  return undefined;
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
