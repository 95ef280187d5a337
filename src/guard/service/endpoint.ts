/** Requests to the HTTP endpoint of another classifier. */
import { ClassifierError, ClassifierSetupError } from "./classifier.ts";

/** A header with a secret. */
export interface EndpointAuth {
  readonly header: string;
  readonly value: string;
}

export interface Endpoint {
  readonly url: URL;
  readonly auth: EndpointAuth | undefined;
  readonly timeoutMs: number;
}

/** More than any answer has; what is longer is not read. */
const MAX_ANSWER_BYTES = 256 * 1024;

/**
 * Returns the URL of an operation at an endpoint: the endpoint's path may end with the operation's
 * or not.
 * @param operation path such as `/classify`
 */
export function endpointUrl(text: string, operation: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol))
    throw new ClassifierSetupError(
      `--endpoint ${JSON.stringify(withoutCredentials(text))} is not a URL with http or https, ` +
        `such as http://127.0.0.1:8200.`,
    );
  if (url.username !== "" || url.password !== "")
    throw new ClassifierSetupError(
      "--endpoint has credentials in its URL. Put the secret into SVC_GUARD_TOKEN.",
    );
  while (url.pathname.endsWith("/")) url.pathname = url.pathname.slice(0, -1);
  if (!url.pathname.endsWith(operation)) {
    // Not `+=` alone: the path of a URL is never empty.
    url.pathname = `${url.pathname === "/" ? "" : url.pathname}${operation}`;
  }
  return url;
}

/** A text that is no URL may have a secret before an `@`. */
const withoutCredentials = (text: string): string => text.slice(text.lastIndexOf("@") + 1);

/**
 * Returns the body of the answer to a POST of JSON. Follows no redirect, which could lead the
 * secret elsewhere.
 */
export async function postJson(
  { url, auth, timeoutMs }: Endpoint,
  body: object,
  signal: AbortSignal,
): Promise<string> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const headers = new Headers({ "content-type": "application/json", accept: "application/json" });
  if (auth !== undefined) headers.set(auth.header, auth.value);
  try {
    const response = await fetch(url, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      redirect: "manual",
      signal: AbortSignal.any([signal, timeout]),
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new ClassifierError(502, `the endpoint answered with status ${response.status}`);
    }
    return await bodyOf(response);
  } catch (error) {
    if (error instanceof ClassifierError) throw error;
    signal.throwIfAborted();
    if (timeout.aborted)
      throw new ClassifierError(504, `the endpoint did not answer within ${timeoutMs} ms`);
    throw new ClassifierError(502, `the endpoint cannot be reached: ${reasonOf(error)}`);
  }
}

async function bodyOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > MAX_ANSWER_BYTES)
      throw new ClassifierError(502, `the endpoint's answer has over ${MAX_ANSWER_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Codes of system errors say enough; messages may have parts of the URL. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const code = (cause as { readonly code?: unknown } | undefined)?.code;
  return typeof code === "string" ? code : "the connection failed";
}
