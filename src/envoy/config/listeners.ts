/** Listeners: the gateway's own, and the internal one for attempts after the first. */
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

/** Headers that the processors read; no others are sent to them. */
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
 * Maximum time for Node to answer a message; a slower Node is considered hung, and the request
 * fails closed.
 */
const MESSAGE_TIMEOUT_MS = 15_000;

/**
 * Longer than any possible wait before an attempt (maxRetryAfterMs and maxIntervalMs, 300 s each at
 * most).
 */
const ATTEMPT_MESSAGE_TIMEOUT_MS = 630_000;

/** Maximum idle times of a listener's connections and uploads. */
export interface IdleTimes {
  /** Between the requests of a connection. */
  readonly connection: string;
  /** Until the headers of a request have arrived. */
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

/** A listener's routes have the same name as the listener. */
export function gatewayListener({ name, at, idle }: GatewayListener): Json {
  return {
    name,
    trafficDirection: "INBOUND",
    address: { socketAddress: { address: at.address, portValue: at.port } },
    perConnectionBufferLimitBytes: BUFFER_LIMIT_BYTES,
    // A wave of new connections does not delay open ones.
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
              // Set by our processor: see CALL_ID_HEADER.
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
              // Unless a route overrides it: see UPLOAD_IDLE in routes.ts.
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
 * Removes, before anything reads them, the headers by which a client could control Envoy's router
 * (`x-envoy-*`) or impersonate our components (`x-svc-*`), and notes the address of the
 * connection's peer. It does not matter whether Envoy considers the client's address internal. As a
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
          // Used to report failed attempts: a client must not choose it.
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

/**
 * Prevents that a provider's key reaches the caller in a header. Our copy of the definitions lacks
 * Lua's.
 */
function noEchoes(): Json {
  return {
    name: LUA,
    typedConfig: typed("xds.type.v3.TypedStruct", {
      typeUrl: LUA_TYPE,
      value: echoesOfHeaders(KEY_HEADERS),
    }),
  };
}

/** Private: only the relay sends to it, on a socket that only this user may open. */
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
              // The first pass enforces the timeouts.
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

/** The router reports every failed attempt, so that the next one knows its delay. */
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
              // Sent one at a time, because a retry waits for it.
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
 * Marks Envoy's local replies, and gives them a body that both OpenAI- and Anthropic-style clients
 * can read (Gemini paths have their own). The LLM processor sees the mark and writes a better
 * error; without it, this body is sent.
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
