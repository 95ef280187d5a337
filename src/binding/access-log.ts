/** Envoy's access log service, as far as the end of service calls needs it. */
import type * as grpc from "@grpc/grpc-js";
import type { ProtoRegistry } from "../xds/proto.ts";
import { type EndedCall, METADATA } from "./authorizer.ts";

const MESSAGE = "envoy.service.accesslog.v3.StreamAccessLogsMessage";
const AUTHZ = "envoy.filters.http.ext_authz";

/** The fields read, in reflection's form; source: envoy/data/accesslog/v3/accesslog.proto. */
interface LogMessage {
  readonly logEntries: { readonly case: "httpLogs" | "tcpLogs" | undefined; readonly value?: { readonly logEntry: readonly LogEntry[] } };
}

interface LogEntry {
  readonly commonProperties?: {
    readonly responseFlags?: Readonly<Record<string, unknown>>;
    readonly metadata?: { readonly filterMetadata: Readonly<Record<string, Readonly<Record<string, unknown>>>> };
  };
  readonly request?: { readonly requestBodyBytes: bigint };
  readonly response?: { readonly responseCode?: number; readonly responseBodyBytes: bigint };
}

export function registerEndedCalls(server: grpc.Server, registry: ProtoRegistry, onEnded: (call: EndedCall) => void): void {
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
          const message = registry.decode(MESSAGE, bytes) as unknown as LogMessage;
          for (const entry of message.logEntries.case === "httpLogs" ? (message.logEntries.value?.logEntry ?? []) : []) {
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
function endedCall({ commonProperties, request, response }: LogEntry): EndedCall | undefined {
  const id = commonProperties?.metadata?.filterMetadata[AUTHZ]?.[METADATA.call];
  if (typeof id !== "string") return undefined;
  const flags = commonProperties?.responseFlags ?? {};
  return {
    id,
    status: response?.responseCode ?? 0,
    bytesSent: Number(request?.requestBodyBytes ?? 0n),
    bytesReceived: Number(response?.responseBodyBytes ?? 0n),
    flags: Object.keys(flags).filter((name) => flags[name] === true),
  };
}
