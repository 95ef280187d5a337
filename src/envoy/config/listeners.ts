/** Listeners: the gateway's own, and the internal one that attempts after the first go through. */
import { echoesOfHeaders, LUA, LUA_TYPE } from "./echoes.ts";
import { duration, type Json, Message, typed } from "./json.ts";
import {
  ATTEMPT_LISTENER,
  BUFFER_LIMIT_BYTES,
  CALL_ID_HEADER,
  Cluster,
  InternalHeader,
  RelaySocket,
} from "./names.ts";

export interface ListenerAddress {
  readonly address: string;
  readonly port: number;
}

/** Headers that the processors look at; nothing else is sent to them. */
const FORWARDED_HEADERS: readonly Json[] = [
  { exact: ":method" },
  { exact: ":path" },
  { exact: ":status" },
  { exact: "authorization" },
  { exact: "x-api-key" },
  { exact: "api-key" },
  { exact: "x-goog-api-key" },
  { exact: "content-type" },
  { exact: "content-length" },
  { exact: "content-encoding" },
  { exact: "anthropic-version" },
  { exact: "anthropic-beta" },
  { exact: "retry-after" },
  { exact: "x-forwarded-for" },
  { prefix: "x-svc-" },
  { exact: CALL_ID_HEADER },
];

/**
 * A message that Node does not answer within this is a Node that hangs: the request fails closed.
 */
const MESSAGE_TIMEOUT_MS = 15_000;

/**
 * Longer than any wait before an attempt can be (maxRetryAfterMs and maxIntervalMs, 300 s each at
 * most).
 */
const ATTEMPT_MESSAGE_TIMEOUT_MS = 630_000;

/** How long a listener's connections and uploads may be idle. */
export interface IdleTimes {
  /** Between requests of a connection. */
  readonly connection: string;
  /** Until the headers of a request are there. */
  readonly headers: string;
}

/** Callers in the cluster keep connections open between turns. */
export const INTERNAL_IDLE: IdleTimes = { connection: "3600s", headers: "15s" };

/** Longer than load balancers keep idle connections to their backends (60 s, mostly). */
export const EXTERNAL_IDLE: IdleTimes = { connection: "90s", headers: "10s" };

const ACCEPTS_PER_EVENT = 4;

export interface GatewayListener {
  readonly name: string;
  readonly at: ListenerAddress;
  readonly idle: IdleTimes;
}

/** A listener's routes have its name. */
export function gatewayListener({ name, at, idle }: GatewayListener): Json {
  return {
    name,
    trafficDirection: "INBOUND",
    address: { socketAddress: { address: at.address, portValue: at.port } },
    perConnectionBufferLimitBytes: BUFFER_LIMIT_BYTES,
    // A wave of new connections does not keep those that are open waiting.
    maxConnectionsToAcceptPerSocketEvent: ACCEPTS_PER_EVENT,
    filterChains: [
      {
        filters: [
          {
            name: "envoy.filters.network.http_connection_manager",
            typedConfig: typed(Message.connectionManager, {
              statPrefix: name,
              rds: {
                routeConfigName: name,
                configSource: { ads: {}, resourceApiVersion: "V3" },
              },
              useRemoteAddress: true,
              skipXffAppend: true,
              // Ours, set by the processor: see CALL_ID_HEADER.
              generateRequestId: false,
              earlyHeaderMutationExtensions: [ownHeadersOnly()],
              normalizePath: true,
              mergeSlashes: true,
              commonHttpProtocolOptions: {
                idleTimeout: idle.connection,
                headersWithUnderscoresAction: "ALLOW",
              },
              httpProtocolOptions: { enableTrailers: true },
              http2ProtocolOptions: {
                maxConcurrentStreams: 256,
                initialStreamWindowSize: 1_048_576,
                initialConnectionWindowSize: 16_777_216,
              },
              maxRequestHeadersKb: 96,
              requestHeadersTimeout: idle.headers,
              requestTimeout: "600s",
              // Until a route says otherwise: see UPLOAD_IDLE in routes.ts.
              streamIdleTimeout: "30s",
              localReplyConfig: localReplies(),
              httpFilters: [
                {
                  name: "envoy.filters.http.ext_proc",
                  typedConfig: typed(Message.extProc, {
                    grpcService: { envoyGrpc: { clusterName: Cluster.llm } },
                    failureModeAllow: false,
                    allowModeOverride: true,
                    messageTimeout: duration(MESSAGE_TIMEOUT_MS),
                    mutationRules: { allowAllRouting: true, allowEnvoy: true },
                    forwardRules: { allowedHeaders: { patterns: [...FORWARDED_HEADERS] } },
                    processingMode: {
                      requestHeaderMode: "SEND",
                      requestBodyMode: "BUFFERED",
                      requestTrailerMode: "SKIP",
                      responseHeaderMode: "SEND",
                      responseBodyMode: "NONE",
                      responseTrailerMode: "SKIP",
                    },
                  }),
                },
                noEchoes(),
                router(),
              ],
            }),
          },
        ],
      },
    ],
  };
}

/**
 * Takes off, before anything reads them, the headers by which a client could steer Envoy's router
 * (`x-envoy-*`) or pose as one of us (`x-svc-*`), and notes who is at the other end of the
 * connection. Whether Envoy holds the client's address for internal makes no difference. As a
 * TypedStruct, because `remove_on_match` is newer than our copy of the definitions.
 */
function ownHeadersOnly(): Json {
  return {
    name: "envoy.http.early_header_mutation.header_mutation",
    typedConfig: typed("xds.type.v3.TypedStruct", {
      typeUrl:
        "type.googleapis.com/envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation",
      value: {
        mutations: [
          ...["x-envoy-", "x-svc-"].map((prefix) => ({
            remove_on_match: { key_matcher: { prefix } },
          })),
          // Failures of attempts are reported by it: a client must not choose whose.
          { remove: CALL_ID_HEADER },
          {
            append: {
              header: {
                key: InternalHeader.peer,
                value: "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%",
              },
              append_action: "OVERWRITE_IF_EXISTS_OR_ADD",
            },
          },
        ],
      },
    }),
  };
}

export function attemptListener(routeName: string): Json {
  return {
    name: ATTEMPT_LISTENER,
    internalListener: {},
    perConnectionBufferLimitBytes: BUFFER_LIMIT_BYTES,
    filterChains: [
      {
        filters: [
          {
            name: "envoy.filters.network.http_connection_manager",
            typedConfig: typed(Message.connectionManager, {
              statPrefix: ATTEMPT_LISTENER,
              rds: {
                routeConfigName: routeName,
                configSource: { ads: {}, resourceApiVersion: "V3" },
              },
              generateRequestId: false,
              httpProtocolOptions: { enableTrailers: true },
              // The outer request's limits apply.
              streamIdleTimeout: "0s",
              localReplyConfig: localReplies(),
              httpFilters: [
                {
                  name: "envoy.filters.http.ext_proc",
                  typedConfig: typed(Message.extProc, {
                    grpcService: { envoyGrpc: { clusterName: Cluster.attempt } },
                    failureModeAllow: false,
                    messageTimeout: duration(ATTEMPT_MESSAGE_TIMEOUT_MS),
                    mutationRules: { allowAllRouting: true, allowEnvoy: true },
                    forwardRules: { allowedHeaders: { patterns: [{ exact: CALL_ID_HEADER }] } },
                    processingMode: {
                      requestHeaderMode: "SEND",
                      requestBodyMode: "NONE",
                      requestTrailerMode: "SKIP",
                      responseHeaderMode: "SKIP",
                      responseBodyMode: "NONE",
                      responseTrailerMode: "SKIP",
                    },
                  }),
                },
                noEchoes(),
                {
                  name: "envoy.filters.http.router",
                  typedConfig: typed(Message.router, { suppressEnvoyHeaders: true }),
                },
              ],
            }),
          },
        ],
      },
    ],
  };
}

/** Headers that carry a provider's key: see src/llm/upstreams.ts. */
const KEY_HEADERS = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];

/** No provider hands its key to the caller in a header. Our copy of the definitions lacks Lua's. */
function noEchoes(): Json {
  return {
    name: LUA,
    typedConfig: typed("xds.type.v3.TypedStruct", {
      typeUrl: LUA_TYPE,
      value: echoesOfHeaders(KEY_HEADERS),
    }),
  };
}

/** Private: the relay alone sends to it, on a socket that this user alone may open. */
export function relayListener(routeName: string, runDir: string): Json {
  return {
    name: "svc-relay",
    address: { pipe: { path: `${runDir}/${RelaySocket.envoy}`, mode: 0o600 } },
    perConnectionBufferLimitBytes: BUFFER_LIMIT_BYTES,
    filterChains: [
      {
        filters: [
          {
            name: "envoy.filters.network.http_connection_manager",
            typedConfig: typed(Message.connectionManager, {
              statPrefix: "svc-relay",
              rds: {
                routeConfigName: routeName,
                configSource: { ads: {}, resourceApiVersion: "V3" },
              },
              generateRequestId: false,
              preserveExternalRequestId: true,
              skipXffAppend: true,
              useRemoteAddress: false,
              serverHeaderTransformation: "PASS_THROUGH",
              httpProtocolOptions: { enableTrailers: true },
              // The first pass keeps the time.
              streamIdleTimeout: "0s",
              localReplyConfig: localReplies(),
              httpFilters: [
                {
                  name: "envoy.filters.http.router",
                  typedConfig: typed(Message.router, { suppressEnvoyHeaders: true }),
                },
              ],
            }),
          },
        ],
      },
    ],
  };
}

/** The router reports every attempt that failed, so that the next one knows how long to wait. */
function router(): Json {
  return {
    name: "envoy.filters.http.router",
    typedConfig: typed(Message.router, {
      suppressEnvoyHeaders: true,
      upstreamLog: [
        {
          name: "failed-attempts",
          filter: {
            orFilter: {
              filters: [
                {
                  statusCodeFilter: {
                    comparison: {
                      op: "GE",
                      value: { defaultValue: 400, runtimeKey: "svc.failed_attempt_status" },
                    },
                  },
                },
                { responseFlagFilter: {} },
              ],
            },
          },
          typedConfig: typed(Message.httpGrpcAccessLog, {
            commonConfig: {
              logName: "failed-attempts",
              grpcService: { envoyGrpc: { clusterName: Cluster.control } },
              transportApiVersion: "V3",
              // One at a time: a retry waits for it.
              bufferSizeBytes: 0,
              bufferFlushInterval: "0.010s",
            },
            additionalResponseHeadersToLog: ["retry-after", "retry-after-ms", InternalHeader.local],
          }),
        },
      ],
    }),
  };
}

/**
 * Envoy's own replies are marked, and get a body that both OpenAI- and Anthropic-style clients read
 * (Gemini paths have one of their own). The LLM processor sees the mark and words the error better;
 * when it is gone, this is what remains.
 */
function localReplies(): Json {
  const notOurs: Json = {
    extensionFilter: {
      name: "envoy.access_loggers.extension_filters.cel",
      typedConfig: typed(Message.celFilter, {
        expression:
          "!response.code_details.startsWith('svc') && response.code_details != 'direct_response'",
      }),
    },
  };
  const mark: Json[] = [
    {
      header: { key: InternalHeader.local, value: "%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%" },
      appendAction: "OVERWRITE_IF_EXISTS_OR_ADD",
    },
  ];
  const geminiPath: Json = {
    headerFilter: {
      header: {
        name: ":path",
        stringMatch: { safeRegex: { regex: "^(/ext)?/(v1|v1beta)/models/.*" } },
      },
    },
  };
  const message = "The gateway could not serve this request (%RESPONSE_CODE_DETAILS%). Try again.";
  return {
    mappers: [
      {
        filter: { andFilter: { filters: [notOurs, geminiPath] } },
        headersToAdd: mark,
        bodyFormatOverride: {
          jsonFormat: { error: { code: "%RESPONSE_CODE%", message, status: "UNAVAILABLE" } },
          contentType: "application/json",
        },
      },
      {
        filter: notOurs,
        headersToAdd: mark,
        bodyFormatOverride: {
          jsonFormat: {
            type: "error",
            error: { type: "api_error", code: "gateway_unavailable", message, param: null },
          },
          contentType: "application/json",
        },
      },
    ],
  };
}
