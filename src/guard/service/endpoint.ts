/** Requests to the HTTP endpoint of another classifier. */
import { ClassifierError, ClassifierSetupError } from "./classifier.ts";

/** A header with a secret. */
export interface EndpointAuth {
  readonly header: string;
  readonly value: string;
}

export interface ClassifierEndpoint {
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
    throw notUsable(text, "is not a URL with http or https");
  if (url.username !== "" || url.password !== "")
    throw new ClassifierSetupError(
      "--endpoint has credentials in its URL. Put the secret into SVC_GUARD_TOKEN.",
    );
  // Not in place: the path of a URL is never empty, so that its last slash stays.
  const path = url.pathname.replace(/\/$/, "");
  if (path.endsWith("/")) throw notUsable(text, "has several slashes at the end of its path");
  url.pathname = path.endsWith(operation) ? path : `${path}${operation}`;
  return url;
}

function notUsable(text: string, problem: string): ClassifierSetupError {
  // The part before an `@` may be a secret.
  const shown = JSON.stringify(text.slice(text.lastIndexOf("@") + 1));
  return new ClassifierSetupError(
    `--endpoint ${shown} ${problem}. Use one such as http://127.0.0.1:8200.`,
  );
}

/**
 * Returns the body of the answer to a POST of JSON. Follows no redirect, which could lead the
 * secret elsewhere.
 */
export async function postJson(
  { url, auth, timeoutMs }: ClassifierEndpoint,
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
