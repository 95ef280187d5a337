/** Helpers to write Envoy resources in protobuf's JSON form. */
import type { JsonObject } from "@bufbuild/protobuf";

export type Json = JsonObject;

/** A `typed_config` of the named message. */
export function typed(message: string, fields: Json = {}): Json {
  return { "@type": `type.googleapis.com/${message}`, ...fields };
}

/** A protobuf Duration. */
export function duration(milliseconds: number): string {
  return `${milliseconds / 1000}s`;
}

const EXTENSIONS = "envoy.extensions";

export const Message = {
  router: `${EXTENSIONS}.filters.http.router.v3.Router`,
  extProc: `${EXTENSIONS}.filters.http.ext_proc.v3.ExternalProcessor`,
  extProcPerRoute: `${EXTENSIONS}.filters.http.ext_proc.v3.ExtProcPerRoute`,
  connectionManager: `${EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
  httpGrpcAccessLog: `${EXTENSIONS}.access_loggers.grpc.v3.HttpGrpcAccessLogConfig`,
  celFilter: `${EXTENSIONS}.access_loggers.filters.cel.v3.ExpressionFilter`,
  previousPriorities: `${EXTENSIONS}.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig`,
  upstreamTls: `${EXTENSIONS}.transport_sockets.tls.v3.UpstreamTlsContext`,
  httpProtocolOptions: `${EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions`,
  aggregate: `${EXTENSIONS}.clusters.aggregate.v3.ClusterConfig`,
} as const;
