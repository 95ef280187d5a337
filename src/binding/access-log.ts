/** Envoy's access log service, as far as the end of service calls needs it. */
import type * as grpc from "@grpc/grpc-js";
import { addAccessLogService } from "../xds/bytes-service.ts";
import { decodeLogEntries, type LogEntry } from "./access-log-wire.ts";
import { type EndedCall, METADATA } from "./authorizer.ts";

const WHERE = { filter: "envoy.filters.http.ext_authz", key: METADATA.call };

export function registerEndedCalls(server: grpc.Server, onEnded: (call: EndedCall) => void): void {
  addAccessLogService(server, (bytes) => {
    for (const entry of decodeLogEntries(bytes, WHERE)) {
      const ended = endedCall(entry);
      if (ended !== undefined) onEnded(ended);
    }
  });
}

/** undefined for what was denied: it did not leave. */
function endedCall({ call, status, requestBytes, responseBytes, flags }: LogEntry): EndedCall | undefined {
  return call === undefined ? undefined : { id: call, status, bytesSent: requestBytes, bytesReceived: responseBytes, flags };
}
