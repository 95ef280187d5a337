/** HTTP requests to one Unix socket, with connections that are kept. */
import http from "node:http";
import type { Readable } from "node:stream";
import type { HeaderTable } from "./headers.ts";

/** Envoy's listeners keep connections longer, so that it never closes one as we use it. */
const KEPT_MS = 30_000;
/** Above what Envoy forwards. */
export const MAX_HEADER_BYTES = 128 * 1024;

export interface UnixCall {
  readonly method: "GET" | "POST" | "DELETE";
  /** Path and query. */
  readonly path: string;
  readonly headers: HeaderTable;
  readonly body?: string;
  /** Ends the request, and its answer. */
  readonly signal: AbortSignal;
  /** Called once, when the request has been handed over completely, or will never be. */
  readonly onSent?: () => void;
}

export class UnixCaller {
  readonly #socketPath: string;
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: Infinity, timeout: KEPT_MS });

  constructor(socketPath: string) {
    this.#socketPath = socketPath;
  }

  /**
   * Sends a request.
   * @returns the answer, when its headers have arrived; it must be read or destroyed
   * @throws the error of the connection, or the reason of the signal
   */
  call({ method, path, headers, body, signal, onSent }: UnixCall): Promise<http.IncomingMessage> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        onSent?.();
        reject(signal.reason as Error);
        return;
      }
      const request = http.request({
        socketPath: this.#socketPath,
        agent: this.#agent,
        method,
        path,
        headers: {
          ...Object.fromEntries(
            // Node.js accepts no list for some headers.
            Object.entries(headers).map(([name, values]) => [
              name,
              values.length === 1 ? values[0] : [...values],
            ]),
          ),
          ...(body !== undefined && { "content-length": Buffer.byteLength(body) }),
        },
        setHost: headers["host"] === undefined,
        maxHeaderSize: MAX_HEADER_BYTES,
        signal,
      });
      request.on("response", (response) => {
        // A broken answer is seen as its end before `complete`.
        response.on("error", () => undefined);
        resolve(response);
      });
      request.on("error", reject);
      if (onSent !== undefined) {
        let sent = false;
        const once = (): void => {
          if (!sent) onSent();
          sent = true;
        };
        request.on("finish", once).on("close", once);
      }
      request.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/**
 * Reads a whole body.
 * @returns undefined if it has more than `maxBytes`, or breaks off; the rest is then not read
 */
export async function readBody(
  message: http.IncomingMessage,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const parts: Buffer[] = [];
  let bytes = 0;
  return new Promise((resolve) => {
    message.on("data", (part: Buffer) => {
      bytes += part.length;
      if (bytes > maxBytes) {
        message.pause();
        resolve(undefined);
      } else parts.push(part);
    });
    message.on("close", () => resolve(undefined));
    message.on("error", () => resolve(undefined));
    message.on("end", () => resolve(message.complete ? Buffer.concat(parts) : undefined));
  });
}

/** Discards a body, so that its connection can be used again. */
export function discard(message: Readable): void {
  message.on("error", () => undefined);
  message.resume();
}
