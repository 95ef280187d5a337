/** Envoy's access log service, as far as the router's reports of failed attempts need it. */
import type * as grpc from "@grpc/grpc-js";
import { addAccessLogService } from "../xds/bytes-service.ts";
import type { ProtoRegistry } from "../protobuf/registry.ts";

const MESSAGE = "envoy.service.accesslog.v3.StreamAccessLogsMessage";

/** One failed attempt, as reported by Envoy's router. */
export interface FailedAttemptReport {
  /** `x-request-id` of the request. */
  readonly requestId: string;
  /** 0 when no response began. */
  readonly status: number;
  /**
   * Response flags that are set, by their names in envoy/data/accesslog/v3 (e.g.
   * `upstreamConnectionFailure`).
   */
  readonly flags: readonly string[];
  /**
   * Envoy's local reply instead of the provider's: `<response flags> <details>`, flags by short
   * name.
   */
  readonly local: string | undefined;
  readonly retryAfter: string | undefined;
  readonly retryAfterMs: string | undefined;
}

/**
 * HTTPAccessLogEntry in reflection's form, with the fields that are read; source:
 * envoy/data/accesslog/v3/accesslog.proto.
 */
interface LogMessage {
  readonly logEntries: {
    readonly case: "httpLogs" | "tcpLogs" | undefined;
    readonly value?: { readonly logEntry: readonly LogEntry[] };
  };
}

interface LogEntry {
  readonly commonProperties?: { readonly responseFlags?: Readonly<Record<string, unknown>> };
  readonly request?: { readonly requestId: string };
  readonly response?: {
    readonly responseCode?: number;
    readonly responseHeaders: Readonly<Record<string, string>>;
  };
}

/**
 * @param onDefect receives errors thrown by `onReport`: an event handler that throws would end the
 * process
 */
export function registerAccessLog(
  server: grpc.Server,
  registry: ProtoRegistry,
  onDefect: (error: unknown) => void,
  onReport: (report: FailedAttemptReport) => void,
): void {
  addAccessLogService(server, (bytes) => {
    try {
      for (const report of decodeReports(registry, bytes)) onReport(report);
    } catch (error) {
      onDefect(error);
    }
  });
}

function decodeReports(registry: ProtoRegistry, bytes: Buffer): FailedAttemptReport[] {
  const message = registry.decode(MESSAGE, bytes) as unknown as LogMessage;
  if (message.logEntries.case !== "httpLogs") return [];
  return (message.logEntries.value?.logEntry ?? []).map((entry) => {
    const flags = entry.commonProperties?.responseFlags ?? {};
    const headers = entry.response?.responseHeaders ?? {};
    return {
      requestId: entry.request?.requestId ?? "",
      status: entry.response?.responseCode ?? 0,
      flags: Object.keys(flags).filter((name) => flags[name] === true),
      local: headers["x-svc-local"],
      retryAfter: headers["retry-after"],
      retryAfterMs: headers["retry-after-ms"],
    };
  });
}
