/** Listeners: the gateway's own, and the internal one for attempts after the first. */
import type {
  AccessLogFilter,
  HeaderValueOption,
  HttpConnectionManager,
  HttpFilter,
  Listener,
  LocalReplyConfig,
} from "../../gen/messages.ts";
import { socketAddress } from "./cluster-parts.ts";
import { duration } from "./duration.ts";
import { echoesOfHeaders } from "./echoes.ts";
import { Extension, extension } from "./extensions.ts";
import {
  CLIENT_HTTP2,
  connectionManager,
  grpcAccessLog,
  grpcService,
  MAX_REQUEST_HEADERS_KB,
  ownHeadersOnly,
  router,
} from "./http.ts";
import {
  ATTEMPT_LISTENER,
  BUFFER_LIMIT_BYTES,
  CALL_ID_HEADER,
  Cluster,
  InternalHeader,
  localCluster,
  McpSocket,
  RelaySocket,
} from "./names.ts";
import { filterName } from "./routes.ts";
import type { CallerListenerName, ProcessorEndpoint } from "./surface.ts";

export interface ListenerAddress {
  readonly address: string;
  readonly port: number;
}

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

const SOL_SOCKET = 1;
const SO_KEEPALIVE = 9;
const IPPROTO_TCP = 6;
const TCP_KEEPIDLE = 4;
const TCP_KEEPINTVL = 5;
const TCP_KEEPCNT = 6;

/**
 * TCP's keepalive (tcp(7)), which accepted connections inherit: a client that is gone without a
 * word is noticed after some minutes, though its stream is silent.
 */
const PROBE_CLIENTS: Pick<Listener, "socketOptions"> = {
  socketOptions: [
    { description: "keepalive", level: SOL_SOCKET, name: SO_KEEPALIVE, intValue: 1 },
    { description: "seconds until a probe", level: IPPROTO_TCP, name: TCP_KEEPIDLE, intValue: 120 },
    { description: "seconds between", level: IPPROTO_TCP, name: TCP_KEEPINTVL, intValue: 30 },
    { description: "probes", level: IPPROTO_TCP, name: TCP_KEEPCNT, intValue: 4 },
  ],
};

export interface GatewayListener {
  readonly name: CallerListenerName;
  readonly at: ListenerAddress;
  readonly idle: IdleTimes;
  /** The processors of its surfaces. */
  readonly processors: readonly ProcessorEndpoint[];
}

/** Builds a listener for callers; its routes have the same name. */
export function gatewayListener({ name, at, idle, processors }: GatewayListener): Listener {
  return {
    name,
    trafficDirection: "INBOUND",
    address: socketAddress(at.address, at.port),
    ...PROBE_CLIENTS,
    // A wave of new connections does not delay open ones.
    maxConnectionsToAcceptPerSocketEvent: ACCEPTS_PER_EVENT,
    ...serving({
      ...routesNamed(name),
      statPrefix: name,
      useRemoteAddress: true,
      skipXffAppend: true,
      // Set by our processor: see CALL_ID_HEADER.
      generateRequestId: false,
      earlyHeaderMutationExtensions: [
        ownHeadersOnly([
          // Used to report failed attempts: a client must not choose it.
          { remove: CALL_ID_HEADER },
          // The address of the connection's peer.
          {
            append: {
              header: {
                key: InternalHeader.peer,
                value: "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%",
              },
              appendAction: "OVERWRITE_IF_EXISTS_OR_ADD",
            },
          },
        ]),
      ],
      normalizePath: true,
      mergeSlashes: true,
      commonHttpProtocolOptions: {
        idleTimeout: idle.connection,
        headersWithUnderscoresAction: "ALLOW",
      },
      httpProtocolOptions: { enableTrailers: true },
      http2ProtocolOptions: CLIENT_HTTP2,
      maxRequestHeadersKb: MAX_REQUEST_HEADERS_KB,
      requestHeadersTimeout: idle.headers,
      requestTimeout: "600s",
      // Unless a route overrides it: see timeouts.idleMs in surface.ts.
      streamIdleTimeout: "30s",
      localReplyConfig: localReplies(),
      httpFilters: [...processors.map(processorFilter), noEchoes(), reportingRouter()],
    }),
  };
}

/**
 * Builds the listener on which the bridge of MCP's old transport calls the gateway for its clients.
 * Private: only this user may open the socket, and the bridge passes on the headers that Envoy gave
 * it, so that a client keeps its address.
 */
export function loopListener(
  name: CallerListenerName,
  processors: readonly ProcessorEndpoint[],
  runDir: string,
): Listener {
  return {
    name,
    address: { pipe: { path: `${runDir}/${McpSocket.loop}`, mode: 0o600 } },
    ...serving({
      ...routesNamed(name),
      statPrefix: name,
      generateRequestId: false,
      preserveExternalRequestId: true,
      skipXffAppend: true,
      useRemoteAddress: false,
      normalizePath: true,
      mergeSlashes: true,
      streamIdleTimeout: "0s",
      localReplyConfig: localReplies(),
      httpFilters: [...processors.map(processorFilter), noEchoes(), router()],
    }),
  };
}

/** Builds the internal listener, into which the router sends the attempts after the first. */
export function attemptListener(routeName: string, processor: ProcessorEndpoint): Listener {
  return {
    name: ATTEMPT_LISTENER,
    internalListener: {},
    ...serving({
      ...routesNamed(routeName),
      statPrefix: ATTEMPT_LISTENER,
      generateRequestId: false,
      httpProtocolOptions: { enableTrailers: true },
      // The outer request's limits apply.
      streamIdleTimeout: "0s",
      localReplyConfig: localReplies(),
      httpFilters: [processorFilter(processor), noEchoes(), router()],
    }),
  };
}

/** Private: only the relay sends to it, on a socket that only this user may open. */
export function relayListener(routeName: string, runDir: string): Listener {
  return {
    name: "svc-relay",
    address: { pipe: { path: `${runDir}/${RelaySocket.envoy}`, mode: 0o600 } },
    ...serving({
      ...routesNamed(routeName),
      statPrefix: "svc-relay",
      generateRequestId: false,
      preserveExternalRequestId: true,
      skipXffAppend: true,
      useRemoteAddress: false,
      serverHeaderTransformation: "PASS_THROUGH",
      httpProtocolOptions: { enableTrailers: true },
      // The first pass enforces the timeouts.
      streamIdleTimeout: "0s",
      localReplyConfig: localReplies(),
      httpFilters: [router()],
    }),
  };
}

/** Builds the fields of a listener that serves HTTP on every connection. */
function serving(
  manager: HttpConnectionManager,
): Pick<Listener, "perConnectionBufferLimitBytes" | "filterChains"> {
  return {
    perConnectionBufferLimitBytes: BUFFER_LIMIT_BYTES,
    filterChains: [{ filters: [connectionManager(manager)] }],
  };
}

/** Builds the field of a connection manager that names its routes. */
function routesNamed(routeConfigName: string): Pick<HttpConnectionManager, "rds"> {
  return { rds: { routeConfigName, configSource: { ads: {}, resourceApiVersion: "V3" } } };
}

/**
 * Builds the filter of a processor, which fails closed. Envoy cannot choose the forwarded headers
 * or the timeout of a filter by route, so each processor has its own filter, and routes choose
 * among the filters: see processorOfRoute in routes.ts.
 */
function processorFilter(processor: ProcessorEndpoint): HttpFilter {
  return {
    ...extension(Extension.extProc, {
      grpcService: grpcService(localCluster(processor.name)),
      failureModeAllow: false,
      allowModeOverride: processor.changesMode,
      messageTimeout: duration(processor.messageTimeoutMs),
      mutationRules: { allowAllRouting: true, allowEnvoy: true },
      forwardRules: { allowedHeaders: { patterns: processor.headers } },
      processingMode: processor.mode,
    }),
    name: filterName(processor),
    disabled: !processor.seesRequestsWithoutRoute,
  };
}

/** Headers that carry a provider's key: see src/llm/attempts/upstreams.ts. */
const KEY_HEADERS = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];

/** Prevents that a provider's key reaches the caller in a header. */
function noEchoes(): HttpFilter {
  return echoesOfHeaders(KEY_HEADERS);
}

/** The router reports every failed attempt, so that the next one knows its delay. */
function reportingRouter(): HttpFilter {
  return router({
    upstreamLog: [
      {
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
        ...grpcAccessLog({
          commonConfig: {
            logName: "failed-attempts",
            grpcService: grpcService(Cluster.control),
            transportApiVersion: "V3",
            // Sent one at a time, because a retry waits for it.
            bufferSizeBytes: 0,
            bufferFlushInterval: "0.010s",
          },
          additionalResponseHeadersToLog: ["retry-after", "retry-after-ms", InternalHeader.local],
        }),
      },
    ],
  });
}

/**
 * Marks Envoy's local replies, and gives them a body that both OpenAI- and Anthropic-style clients
 * can read (Gemini paths have their own). The LLM processor sees the mark and writes a better
 * error; without it, this body is sent.
 */
function localReplies(): LocalReplyConfig {
  const notOurs: AccessLogFilter = {
    extensionFilter: extension(Extension.celFilter, {
      expression:
        "!response.code_details.startsWith('svc') && response.code_details != 'direct_response'",
    }),
  };
  const mark: readonly HeaderValueOption[] = [
    {
      header: { key: InternalHeader.local, value: "%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%" },
      appendAction: "OVERWRITE_IF_EXISTS_OR_ADD",
    },
  ];
  const geminiPath: AccessLogFilter = {
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
