/**
 * The sidecar's Envoy: its complete bootstrap, which does not change while it runs (a changed list
 * of Providers needs a new sidecar). It has plain and TLS listeners, one authorization call for
 * each request, and one cluster for all real endpoints, whose address the authorizer returns.
 */
import type {
  Bootstrap,
  CheckSettings,
  Cluster,
  FilterChain,
  HeaderMatcher,
  HttpFilter,
  Listener,
  Route,
  RouteMatch,
  TransportSocket,
} from "../../gen/messages.ts";
import {
  type HttpOptions,
  httpOptions,
  oneEndpoint,
  socketAddress,
  unixSocket,
  upstreamTls,
} from "./cluster-parts.ts";
import { echoesOfNote } from "./echoes.ts";
import { type ExtensionConfig, Extension, extension, typed } from "./extensions.ts";
import {
  CLIENT_HTTP2,
  connectionManager,
  grpcAccessLog,
  grpcService,
  KEEPALIVE,
  MAX_REQUEST_HEADERS_KB,
  ownHeadersOnly,
  router,
} from "./http.ts";

export interface SidecarListener {
  readonly address: string;
  readonly port: number;
  /** Path of the network namespace to listen in; undefined for this process's own. */
  readonly netns?: string | undefined;
}

/** Requests whose body is read before they are evaluated; the first rule that matches applies. */
export interface SidecarBodyRule {
  /** RE2 for the whole `:authority`. */
  readonly authority: string;
  readonly methods: readonly string[] | undefined;
  /** RE2 for the whole path, without the query. */
  readonly path: string;
  /** RE2 for the whole `content-type`; undefined for any, or none. */
  readonly contentType: string | undefined;
  /** undefined: their body is not read. */
  readonly maxBytes: number | undefined;
}

/** An endpoint of an MCP server: `mcp.sock` of the run folder filters its answers. */
export interface SidecarMcpServer {
  readonly host: string;
  /** Path without its query. */
  readonly path: string;
  /** Whether messages are sent to other paths of the host (the older transport). */
  readonly hasMessagePaths: boolean;
  /** Unix socket of a server that runs in the sidecar; undefined for a real endpoint. */
  readonly socket: string | undefined;
  /** Maximum size of a message in bytes; larger ones are answered with 413. */
  readonly maxBytes: number;
}

export interface SidecarOptions {
  readonly nodeId: string;
  /**
   * Folder of `authz.sock`, `authz-http.sock`, `access-log.sock`, `secrets.sock` and
   * `envoy-admin.sock`.
   */
  readonly runDir: string;
  readonly http: SidecarListener;
  readonly https: SidecarListener;
  /** Listener inside the agent's namespace that forwards to the gateway. */
  readonly gateway:
    | (SidecarListener & { readonly target: { readonly address: string; readonly port: number } })
    | undefined;
  readonly bodies: readonly SidecarBodyRule[];
  /** Endpoints of MCP servers. */
  readonly mcp?: readonly SidecarMcpServer[];
  /** PEM bundle against which real endpoints are verified. */
  readonly caFile: string;
}

/**
 * One authorizer for each listener: the socket tells the service whether a request came over TLS.
 * Nothing that a client sends can change it.
 */
const AUTHORIZERS = { https: "svc_authorizer", http: "svc_authorizer_http" } as const;
const ACCESS_LOG = "svc_access_log";
const SECRETS = "svc_secrets";
const UPSTREAM = "service";
const UPSTREAM_H1 = "service-h1";
const GATEWAY = "gateway";
const AUTHZ = Extension.extAuthz.name;
const MCP = "svc_mcp";
const MCP_FILTER = Extension.extProc.name;

/** Names the call of a request for filters behind the authorizer; never sent upstream. */
export const CALL_HEADER = "x-svc-call";

/** Headers that Envoy adds: the service must see the agent's request. */
const NOT_FOR_SERVICES: readonly string[] = [
  "x-forwarded-proto",
  "x-forwarded-for",
  "x-envoy-external-address",
  "x-envoy-internal",
  "x-envoy-expected-rq-timeout-ms",
];

/**
 * Maximum size of a regular expression in RE2 instructions; Envoy's default of 100 is too small for
 * a few hosts. These expressions come from the configuration, with as many hosts as a Provider may
 * name; RE2 matches in linear time.
 */
const MAX_REGEX_SIZE = 100_000;

/**
 * Idle time after which a connection is closed; a stream or WebSocket may be silent without limit.
 */
const CONNECTION_IDLE = "3600s";

/** Size of the buffers of connections. */
const BUFFER_LIMIT_BYTES = 1_048_576;

/** Builds the sidecar's complete bootstrap. */
export function sidecarBootstrap(options: SidecarOptions): Bootstrap {
  const { runDir, http, https, gateway, mcp = [] } = options;
  return {
    node: { id: options.nodeId, cluster: "svc-sidecar" },
    admin: { address: { pipe: { path: `${runDir}/envoy-admin.sock`, mode: 0o600 } } },
    // See envoy/bootstrap.yaml: a client that is forgotten ends streams that are still open.
    grpcAsyncClientManagerConfig: { maxCachedEntryIdleDuration: "31536000s" },
    layeredRuntime: {
      layers: [
        {
          name: "static",
          staticLayer: {
            "re2.max_program_size.error_level": MAX_REGEX_SIZE,
            "re2.max_program_size.warn_level": MAX_REGEX_SIZE,
          },
        },
      ],
    },
    staticResources: {
      listeners: [
        listener("svc-http", http, { filters: [serving("http", options)] }),
        listener("svc-https", https, {
          filters: [serving("https", options)],
          transportSocket: intercepting(),
        }),
        ...(gateway === undefined
          ? []
          : [listener("svc-gateway", gateway, { filters: [toGateway()] })]),
      ],
      clusters: [
        // One socket for each: the transport behind it supports only one method.
        service(AUTHORIZERS.https, `${runDir}/authz.sock`),
        service(AUTHORIZERS.http, `${runDir}/authz-http.sock`),
        service(ACCESS_LOG, `${runDir}/access-log.sock`),
        service(SECRETS, `${runDir}/secrets.sock`),
        upstream(UPSTREAM, options.caFile, {
          autoConfig: { http2ProtocolOptions: {}, httpProtocolOptions: {} },
        }),
        // Most servers support upgrades only in HTTP/1.1.
        upstream(UPSTREAM_H1, options.caFile, {
          explicitHttpConfig: { httpProtocolOptions: {} },
        }),
        ...(gateway === undefined ? [] : [gatewayCluster(gateway.target)]),
        ...(mcp.length === 0 ? [] : [service(MCP, `${runDir}/mcp.sock`)]),
        ...mcp.flatMap(({ host, socket }) =>
          socket === undefined ? [] : [localServer(host, socket)],
        ),
      ],
    },
  };
}

function listener(
  name: string,
  { address, port, netns }: SidecarListener,
  chain: FilterChain,
): Listener {
  return {
    name,
    trafficDirection: "OUTBOUND",
    address: {
      socketAddress: { address, portValue: port, networkNamespaceFilepath: netns },
    },
    perConnectionBufferLimitBytes: BUFFER_LIMIT_BYTES,
    listenerFilters:
      chain.transportSocket === undefined ? undefined : [extension(Extension.tlsInspector, {})],
    filterChains: [chain],
  };
}

/** A certificate for each server name, minted on first use: see src/envoy/sds/server.ts. */
function intercepting(): TransportSocket {
  return extension(Extension.downstreamTls, {
    // Not available together with on-demand certificates.
    disableStatelessSessionResumption: true,
    disableStatefulSessionResumption: true,
    commonTlsContext: {
      alpnProtocols: ["h2", "http/1.1"],
      customTlsCertificateSelector: extension(Extension.onDemandCertificates, {
        configSource: {
          resourceApiVersion: "V3",
          apiConfigSource: {
            apiType: "DELTA_GRPC",
            transportApiVersion: "V3",
            grpcServices: [grpcService(SECRETS)],
          },
        },
        // A handshake without a server name gets no certificate.
        certificateMapper: extension(Extension.certificateByServerName, { defaultValue: "-" }),
      }),
    },
  });
}

/**
 * The plain listener: without the port of its own in the host (`http://api.github.com:8081/`), and
 * with the scheme of the upstream, which is called over TLS.
 */
const PLAIN = {
  stripMatchingHostPort: true,
  schemeHeaderTransformation: { schemeToOverwrite: "https" },
} as const;

function serving(
  name: keyof typeof AUTHORIZERS,
  { bodies, mcp = [] }: SidecarOptions,
): ExtensionConfig {
  const hasMcp = mcp.length > 0;
  return connectionManager({
    statPrefix: name,
    ...(name === "http" ? PLAIN : {}),
    useRemoteAddress: true,
    skipXffAppend: true,
    generateRequestId: false,
    preserveExternalRequestId: true,
    serverHeaderTransformation: "PASS_THROUGH",
    // The proxy forwards exactly the bytes that it evaluated: paths are not changed.
    normalizePath: false,
    mergeSlashes: false,
    pathWithEscapedSlashesAction: "KEEP_UNCHANGED",
    proxy100Continue: true,
    commonHttpProtocolOptions: {
      idleTimeout: CONNECTION_IDLE,
      // The service refuses such names (src/binding/disguised.ts), except in object metadata,
      // where they are common and would be lost.
      headersWithUnderscoresAction: "ALLOW",
    },
    httpProtocolOptions: { enableTrailers: true },
    http2ProtocolOptions: { ...CLIENT_HTTP2, allowConnect: true },
    maxRequestHeadersKb: MAX_REQUEST_HEADERS_KB,
    requestHeadersTimeout: "15s",
    streamIdleTimeout: "0s",
    upgradeConfigs: [{ upgradeType: "websocket" }],
    earlyHeaderMutationExtensions: [ownHeadersOnly()],
    routeConfig: {
      name,
      requestHeadersToRemove: hasMcp ? [...NOT_FOR_SERVICES, CALL_HEADER] : NOT_FOR_SERVICES,
      virtualHosts: [
        {
          name: "services",
          domains: ["*"],
          routes: [
            ...mcp.flatMap(endpointRoutes),
            ...bodies.map((rule) => bodyRoute(rule)),
            ...mcp.flatMap(hostRoute),
            route({ prefix: "/", headers: [{ name: "upgrade", presentMatch: true }] }, UPSTREAM_H1),
            route({ prefix: "/" }, UPSTREAM),
          ],
        },
      ],
    },
    httpFilters: [
      extension(Extension.extAuthz, {
        transportApiVersion: "V3",
        grpcService: { ...grpcService(AUTHORIZERS[name]), timeout: "30s" },
        failureModeAllow: false,
        statusOnError: { code: "ServiceUnavailable" },
        includeTlsSession: true,
        encodeRawHeaders: true,
        // Only for packAsBytes, which takes effect here and not on the routes
        // (envoyproxy/envoy#35623): without it a body is sent as text with other bytes
        // replaced, and differs from the forwarded one. Each route determines whether the body
        // is read.
        withRequestBody: { maxRequestBytes: 1, packAsBytes: true },
      }),
      // The authorizer's note of the injected credential: see src/binding/authorizer.ts.
      echoesOfNote({ namespace: AUTHZ, key: "credentials" }),
      ...(hasMcp ? [answerFilter()] : []),
      router(),
    ],
    accessLog: [
      grpcAccessLog({
        commonConfig: {
          logName: "ended",
          grpcService: grpcService(ACCESS_LOG),
          transportApiVersion: "V3",
          bufferFlushInterval: "0.1s",
        },
      }),
    ],
  });
}

/** @param checkSettings of the authorization call */
function route(
  match: RouteMatch,
  cluster: string,
  checkSettings: CheckSettings = { disableRequestBodyBuffering: true },
): Route {
  return {
    match,
    // No limit on the total time of uploads, downloads and streams.
    route: { cluster, timeout: "0s", idleTimeout: "0s" },
    typedPerFilterConfig: {
      [AUTHZ]: typed("envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute", {
        checkSettings,
      }),
    },
  };
}

/** Filters answers of MCP servers; only their routes enable it. */
function answerFilter(): HttpFilter {
  return {
    ...extension(Extension.extProc, {
      grpcService: grpcService(MCP),
      failureModeAllow: false,
      allowModeOverride: true,
      messageTimeout: "15s",
      forwardRules: {
        allowedHeaders: {
          patterns: [
            { exact: ":status" },
            { exact: "content-type" },
            { exact: "content-encoding" },
            { exact: "content-length" },
            { exact: CALL_HEADER },
          ],
        },
      },
      processingMode: {
        requestHeaderMode: "SEND",
        requestBodyMode: "NONE",
        requestTrailerMode: "SKIP",
        responseHeaderMode: "SEND",
        responseBodyMode: "NONE",
        responseTrailerMode: "SKIP",
      },
    }),
    disabled: true,
  };
}

/** The endpoint of an MCP server: its messages are read, its answers filtered. */
function endpointRoutes(server: SidecarMcpServer): Route[] {
  const { host, path, hasMessagePaths, maxBytes } = server;
  const authority = hostRegex(host);
  const read = { authority, methods: ["POST"], contentType: undefined, maxBytes };
  const cluster = clusterOf(server);
  const endpoint = escapedRegex(path);
  return [
    filtered(bodyRoute({ ...read, path: endpoint }, cluster)),
    filtered(
      route(
        { safeRegex: { regex: endpoint }, headers: [matching(":authority", authority)] },
        cluster,
      ),
    ),
    ...(hasMessagePaths ? [filtered(bodyRoute({ ...read, path: "/.*" }, cluster))] : []),
  ];
}

/** Other paths of a server in the sidecar. */
function hostRoute(server: SidecarMcpServer): Route[] {
  if (server.socket === undefined) return [];
  const headers = [matching(":authority", hostRegex(server.host))];
  return [route({ prefix: "/", headers }, clusterOf(server))];
}

function filtered(one: Route): Route {
  return {
    ...one,
    typedPerFilterConfig: {
      ...one.typedPerFilterConfig,
      [MCP_FILTER]: typed("envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute", {
        overrides: {},
      }),
    },
  };
}

function clusterOf({ host, socket }: SidecarMcpServer): string {
  return socket === undefined ? UPSTREAM : localClusterOf(host);
}

function localClusterOf(host: string): string {
  return `mcp:${host}`;
}

function localServer(host: string, socket: string): Cluster {
  return {
    ...oneEndpoint(localClusterOf(host), unixSocket(socket)),
    connectTimeout: "1s",
    perConnectionBufferLimitBytes: BUFFER_LIMIT_BYTES,
    ...httpOptions({ explicitHttpConfig: { httpProtocolOptions: {} } }),
  };
}

function hostRegex(host: string): string {
  return `${escapedRegex(host)}(?::443|:80)?`;
}

function escapedRegex(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function bodyRoute(
  { authority, methods, path, contentType, maxBytes }: SidecarBodyRule,
  cluster = UPSTREAM,
): Route {
  const headers: HeaderMatcher[] = [matching(":authority", authority)];
  if (methods !== undefined) headers.push(matching(":method", methods.join("|")));
  if (contentType !== undefined) headers.push(matching("content-type", contentType));
  const settings: CheckSettings | undefined =
    maxBytes === undefined
      ? undefined
      : {
          withRequestBody: {
            maxRequestBytes: maxBytes,
            allowPartialMessage: false,
            packAsBytes: true,
          },
        };
  return route({ safeRegex: { regex: path }, headers }, cluster, settings);
}

/** @param regex RE2 for the whole value of the header */
function matching(name: string, regex: string): HeaderMatcher {
  return { name, stringMatch: { safeRegex: { regex } } };
}

/**
 * The authorizer sets the destination in the request's metadata; the certificate there must be
 * valid for the requested host.
 */
function upstream(name: string, caFile: string, protocol: HttpOptions): Cluster {
  return {
    name,
    type: "ORIGINAL_DST",
    lbPolicy: "CLUSTER_PROVIDED",
    connectTimeout: "10s",
    cleanupInterval: "60s",
    perConnectionBufferLimitBytes: BUFFER_LIMIT_BYTES,
    originalDstLbConfig: { metadataKey: { key: AUTHZ, path: [{ key: "upstream" }] } },
    circuitBreakers: {
      thresholds: [{ maxConnections: 10_000, maxPendingRequests: 10_000, maxRequests: 10_000 }],
    },
    transportSocket: upstreamTls({ caFile }),
    ...httpOptions({
      upstreamHttpProtocolOptions: { autoSni: true, autoSanValidation: true },
      commonHttpProtocolOptions: { idleTimeout: "300s" },
      ...protocol,
    }),
  };
}

function service(name: string, socket: string): Cluster {
  return {
    ...oneEndpoint(name, unixSocket(socket)),
    connectTimeout: "1s",
    circuitBreakers: {
      thresholds: [{ maxConnections: 100_000, maxPendingRequests: 100_000, maxRequests: 100_000 }],
    },
    ...httpOptions({
      explicitHttpConfig: { http2ProtocolOptions: { connectionKeepalive: KEEPALIVE } },
    }),
  };
}

function toGateway(): ExtensionConfig {
  return extension(Extension.tcpProxy, {
    statPrefix: GATEWAY,
    cluster: GATEWAY,
    idleTimeout: CONNECTION_IDLE,
  });
}

function gatewayCluster({
  address,
  port,
}: {
  readonly address: string;
  readonly port: number;
}): Cluster {
  return { ...oneEndpoint(GATEWAY, socketAddress(address, port)), connectTimeout: "1s" };
}
