/**
 * Envoy's access log service, as far as the end of service calls needs it: it receives a stream of
 * reports and sends no answer.
 */
import { serveStreams, type StreamServer } from "../envoy/grpc/serve.ts";
import { decodeLogEntries, type LogEntry, UNAUTHORIZED } from "../envoy/access-log/wire.ts";
import { type EndedCall, type EnvoyRefusal, METADATA } from "./authorizer.ts";

const WHERE = { filter: "envoy.filters.http.ext_authz", key: METADATA.call };

/** Envoy sends its entries every 100 ms, or when they reach 16 KiB. */
const LARGEST_REPORT_BYTES = 16 * 1024 * 1024;

export interface EndedCallsOptions {
  /** Path of the Unix socket. */
  readonly path: string;
  readonly onEnded: (call: EndedCall) => void;
  /** Receives a request that Envoy itself refused, so that the authorizer did not see it. */
  readonly onRefused: (refusal: EnvoyRefusal) => void;
  readonly onDefect: (error: unknown) => void;
}

export function serveEndedCalls({
  path,
  onEnded,
  onRefused,
  onDefect,
}: EndedCallsOptions): Promise<StreamServer> {
  const message = (bytes: Buffer): void => {
    try {
      for (const entry of decodeLogEntries(bytes, WHERE)) {
        const ended = endedCall(entry);
        if (ended !== undefined) onEnded(ended);
        else if (isRefusedByEnvoy(entry)) onRefused(entry);
      }
    } catch (error) {
      onDefect(error);
    }
  };
  return serveStreams({
    path,
    maxMessageBytes: LARGEST_REPORT_BYTES,
    onDefect,
    onStream: () => ({ message, end: () => undefined, reset: () => undefined }),
  });
}

/** Returns undefined for a denied call, which was not forwarded. */
function endedCall({
  call,
  status,
  requestBytes,
  responseBytes,
  flags,
}: LogEntry): EndedCall | undefined {
  return call === undefined
    ? undefined
    : { id: call, status, bytesSent: requestBytes, bytesReceived: responseBytes, flags };
}

/** Status 0: the client left before there was a response. */
function isRefusedByEnvoy({ call, status, flags }: LogEntry): boolean {
  return call === undefined && status >= 400 && !flags.includes(UNAUTHORIZED);
}
