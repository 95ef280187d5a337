/** Envoy's access log service, as far as the end of service calls needs it. */
import type * as grpc from "@grpc/grpc-js";
import { decodeLogEntries, type LogEntry } from "./access-log-wire.ts";
import { type EndedCall, METADATA } from "./authorizer.ts";

const WHERE = { filter: "envoy.filters.http.ext_authz", key: METADATA.call };

export function registerEndedCalls(server: grpc.Server, onEnded: (call: EndedCall) => void): void {
  const same = (bytes: Buffer): Buffer => bytes;
  server.addService(
    {
      StreamAccessLogs: {
        path: "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs",
        requestStream: true,
        responseStream: false,
        requestSerialize: same,
        requestDeserialize: same,
        responseSerialize: same,
        responseDeserialize: same,
      },
    },
    {
      StreamAccessLogs: (call: grpc.ServerReadableStream<Buffer, Buffer>, done: grpc.sendUnaryData<Buffer>) => {
        call.on("data", (bytes: Buffer) => {
          for (const entry of decodeLogEntries(bytes, WHERE)) {
            const ended = endedCall(entry);
            if (ended !== undefined) onEnded(ended);
          }
        });
        call.on("error", () => undefined);
        call.on("end", () => done(null, Buffer.alloc(0)));
      },
    },
  );
}

/** undefined for what was denied: it did not leave. */
function endedCall({ call, status, requestBytes, responseBytes, flags }: LogEntry): EndedCall | undefined {
  return call === undefined ? undefined : { id: call, status, bytesSent: requestBytes, bytesReceived: responseBytes, flags };
}
