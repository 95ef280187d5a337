/** HTTP parts of the gateway's and the sidecar's configurations. */
import type {
  AccessLog,
  GrpcService,
  Http2ProtocolOptions,
  HttpConnectionManager,
  HttpFilter,
  HttpGrpcAccessLogConfig,
  KeepaliveSettings,
  Messages,
  Router,
} from "../../gen/messages.ts";
import { type ExtensionConfig, Extension, extension, newerExtension, typed } from "./extensions.ts";

/** Settings of HTTP/2 with clients. */
export const CLIENT_HTTP2 = {
  maxConcurrentStreams: 256,
  initialStreamWindowSize: 1_048_576,
  initialConnectionWindowSize: 16_777_216,
} as const satisfies Http2ProtocolOptions;

/** Maximum size of a request's headers in KiB. */
export const MAX_REQUEST_HEADERS_KB = 96;

/** A service of ours that hangs is noticed: its streams end, requests fail closed. */
export const KEEPALIVE: KeepaliveSettings = { interval: "10s", timeout: "5s" };

/** A change of a request's headers, before anything reads them. */
type EarlyMutation = NonNullable<
  Messages[typeof Extension.earlyHeaderMutation.message]["mutations"]
>[number];

/** Builds the network filter that serves HTTP. */
export function connectionManager(settings: HttpConnectionManager): ExtensionConfig {
  return extension(Extension.connectionManager, settings);
}

/** Builds the last HTTP filter, which sends requests to their clusters. */
export function router(settings: Router = {}): HttpFilter {
  return extension(Extension.router, { suppressEnvoyHeaders: true, ...settings });
}

/** Builds a gRPC service at a cluster. */
export function grpcService(clusterName: string): GrpcService {
  return { envoyGrpc: { clusterName } };
}

/** Builds an access log that is sent over gRPC. */
export function grpcAccessLog(
  settings: HttpGrpcAccessLogConfig & { readonly commonConfig: { readonly logName: string } },
): AccessLog {
  return {
    name: settings.commonConfig.logName,
    typedConfig: typed("envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig", settings),
  };
}

/**
 * Builds the extension that removes, before anything reads them, the headers by which a client
 * could control Envoy's router (`x-envoy-*`) or impersonate our components (`x-svc-*`). It does not
 * matter whether Envoy considers the client's address internal.
 * @param more further changes of the request's headers, which follow
 */
export function ownHeadersOnly(more: readonly EarlyMutation[] = []): ExtensionConfig {
  return newerExtension(Extension.earlyHeaderMutation, {
    mutations: [
      ...["x-envoy-", "x-svc-"].map((prefix): EarlyMutation => ({
        removeOnMatch: { keyMatcher: { prefix } },
      })),
      ...more,
    ],
  });
}
