/**
 * The sidecar's Envoy: its complete bootstrap, which does not change while it runs (a changed list
 * of Providers needs a new sidecar). It has plain and TLS listeners, one authorization call for
 * each request, and one cluster for all real endpoints, whose address the authorizer returns.
 */
import { echoesOfNote, LUA, LUA_TYPE } from "./echoes.ts";
import type { Json } from "./json.ts";

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

export interface SidecarOptions {
  readonly nodeId: string;
  /** Folder of `authz.sock`, `access-log.sock`, `secrets.sock` and `envoy-admin.sock`. */
  readonly runDir: string;
  readonly http: SidecarListener;
  readonly https: SidecarListener;
  /** Listener inside the agent's namespace that forwards to the gateway. */
  readonly gateway:
    | (SidecarListener & { readonly target: { readonly address: string; readonly port: number } })
    | undefined;
  readonly bodies: readonly SidecarBodyRule[];
  /** PEM bundle against which real endpoints are verified. */
  readonly caFile: string;
}

const EXTENSIONS = "type.googleapis.com/envoy.extensions";
const AUTHORIZER = "svc_authorizer";
const ACCESS_LOG = "svc_access_log";
const SECRETS = "svc_secrets";
const UPSTREAM = "service";
const UPSTREAM_H1 = "service-h1";
const AUTHZ = "envoy.filters.http.ext_authz";

/** Headers that Envoy adds: the service must see the agent's request. */
const NOT_FOR_SERVICES: string[] = [
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

export function sidecarBootstrap(options: SidecarOptions): Json {
  const { runDir, http, https, gateway } = options;
  return {
    node: { id: options.nodeId, cluster: "svc-sidecar" },
    admin: { address: { pipe: { path: `${runDir}/envoy-admin.sock`, mode: 384 } } },
    layered_runtime: {
      layers: [
        {
          name: "static",
          static_layer: {
            "re2.max_program_size.error_level": MAX_REGEX_SIZE,
            "re2.max_program_size.warn_level": MAX_REGEX_SIZE,
          },
        },
      ],
    },
    static_resources: {
      listeners: [
        listener("svc-http", http, { filters: [connectionManager("http", options)] }),
        listener("svc-https", https, {
          filters: [connectionManager("https", options)],
          transport_socket: intercepting(),
        }),
        ...(gateway === undefined
          ? []
          : [listener("svc-gateway", gateway, { filters: [toGateway()] })]),
      ],
      clusters: [
        // One socket for each: the transport behind it supports only one method.
        service(AUTHORIZER, `${runDir}/authz.sock`),
        service(ACCESS_LOG, `${runDir}/access-log.sock`),
        service(SECRETS, `${runDir}/secrets.sock`),
        upstream(UPSTREAM, options.caFile, {
          auto_config: { http2_protocol_options: {}, http_protocol_options: {} },
        }),
        // Most servers support upgrades only in HTTP/1.1.
        upstream(UPSTREAM_H1, options.caFile, {
          explicit_http_config: { http_protocol_options: {} },
        }),
        ...(gateway === undefined ? [] : [gatewayCluster(gateway.target)]),
      ],
    },
  };
}

function listener(name: string, { address, port, netns }: SidecarListener, chain: Json): Json {
  const tls = "transport_socket" in chain;
  return {
    name,
    traffic_direction: "OUTBOUND",
    address: {
      socket_address: {
        address,
        port_value: port,
        ...(netns === undefined ? {} : { network_namespace_filepath: netns }),
      },
    },
    per_connection_buffer_limit_bytes: 1_048_576,
    ...(tls
      ? {
          listener_filters: [
            {
              name: "envoy.filters.listener.tls_inspector",
              typed_config: {
                "@type": `${EXTENSIONS}.filters.listener.tls_inspector.v3.TlsInspector`,
              },
            },
          ],
        }
      : {}),
    filter_chains: [chain],
  };
}

/** A certificate for each server name, minted on first use: see src/envoy/sds/server.ts. */
function intercepting(): Json {
  return {
    name: "envoy.transport_sockets.tls",
    typed_config: {
      "@type": `${EXTENSIONS}.transport_sockets.tls.v3.DownstreamTlsContext`,
      // Not available together with on-demand certificates.
      disable_stateless_session_resumption: true,
      disable_stateful_session_resumption: true,
      common_tls_context: {
        alpn_protocols: ["h2", "http/1.1"],
        custom_tls_certificate_selector: {
          name: "on-demand",
          typed_config: {
            "@type": `${EXTENSIONS}.transport_sockets.tls.cert_selectors.on_demand_secret.v3.Config`,
            config_source: {
              resource_api_version: "V3",
              api_config_source: {
                api_type: "DELTA_GRPC",
                transport_api_version: "V3",
                grpc_services: [{ envoy_grpc: { cluster_name: SECRETS } }],
              },
            },
            certificate_mapper: {
              name: "sni",
              // A handshake without a server name gets no certificate.
              typed_config: {
                "@type": `${EXTENSIONS}.transport_sockets.tls.cert_mappers.sni.v3.SNI`,
                default_value: "-",
              },
            },
          },
        },
      },
    },
  };
}

function connectionManager(name: string, { bodies }: SidecarOptions): Json {
  return {
    name: "envoy.filters.network.http_connection_manager",
    typed_config: {
      "@type": `${EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
      stat_prefix: name,
      use_remote_address: true,
      skip_xff_append: true,
      generate_request_id: false,
      preserve_external_request_id: true,
      server_header_transformation: "PASS_THROUGH",
      // The proxy forwards exactly the bytes that it evaluated: paths are not changed.
      normalize_path: false,
      merge_slashes: false,
      path_with_escaped_slashes_action: "KEEP_UNCHANGED",
      proxy_100_continue: true,
      common_http_protocol_options: {
        idle_timeout: CONNECTION_IDLE,
        // The service refuses such names (src/binding/disguised.ts), except in object metadata,
        // where they are common and would be lost.
        headers_with_underscores_action: "ALLOW",
      },
      http_protocol_options: { enable_trailers: true },
      http2_protocol_options: {
        max_concurrent_streams: 256,
        initial_stream_window_size: 1_048_576,
        initial_connection_window_size: 16_777_216,
        allow_connect: true,
      },
      max_request_headers_kb: 96,
      request_headers_timeout: "15s",
      stream_idle_timeout: "0s",
      upgrade_configs: [{ upgrade_type: "websocket" }],
      early_header_mutation_extensions: [
        {
          name: "envoy.http.early_header_mutation.header_mutation",
          typed_config: {
            "@type": `${EXTENSIONS}.http.early_header_mutation.header_mutation.v3.HeaderMutation`,
            mutations: ["x-envoy-", "x-svc-"].map((prefix) => ({
              remove_on_match: { key_matcher: { prefix } },
            })),
          },
        },
      ],
      route_config: {
        name,
        request_headers_to_remove: NOT_FOR_SERVICES,
        virtual_hosts: [
          {
            name: "services",
            domains: ["*"],
            routes: [
              ...bodies.map(bodyRoute),
              route(
                { prefix: "/", headers: [{ name: "upgrade", present_match: true }] },
                UPSTREAM_H1,
              ),
              route({ prefix: "/" }, UPSTREAM),
            ],
          },
        ],
      },
      http_filters: [
        {
          name: AUTHZ,
          typed_config: {
            "@type": `${EXTENSIONS}.filters.http.ext_authz.v3.ExtAuthz`,
            transport_api_version: "V3",
            grpc_service: { envoy_grpc: { cluster_name: AUTHORIZER }, timeout: "30s" },
            failure_mode_allow: false,
            status_on_error: { code: "ServiceUnavailable" },
            include_tls_session: true,
            encode_raw_headers: true,
            // Only for pack_as_bytes, which takes effect here and not on the routes
            // (envoyproxy/envoy#35623): without it a body is sent as text with other bytes
            // replaced, and differs from the forwarded one. Each route determines whether the body
            // is read.
            with_request_body: { max_request_bytes: 1, pack_as_bytes: true },
          },
        },
        // The authorizer's note of the injected credential: see src/binding/authorizer.ts.
        {
          name: LUA,
          typed_config: {
            "@type": LUA_TYPE,
            ...echoesOfNote({ namespace: AUTHZ, key: "credentials" }),
          },
        },
        {
          name: "envoy.filters.http.router",
          typed_config: {
            "@type": `${EXTENSIONS}.filters.http.router.v3.Router`,
            suppress_envoy_headers: true,
          },
        },
      ],
      access_log: [
        {
          name: "ended",
          typed_config: {
            "@type": `${EXTENSIONS}.access_loggers.grpc.v3.HttpGrpcAccessLogConfig`,
            common_config: {
              log_name: "ended",
              grpc_service: { envoy_grpc: { cluster_name: ACCESS_LOG } },
              transport_api_version: "V3",
              buffer_flush_interval: "0.1s",
            },
          },
        },
      ],
    },
  };
}

/** @param settings of the authorization call */
function route(
  match: Json,
  cluster: string,
  settings: Json = { disable_request_body_buffering: true },
): Json {
  return {
    match,
    // No limit on the total time of uploads, downloads and streams.
    route: { cluster, timeout: "0s", idle_timeout: "0s" },
    typed_per_filter_config: {
      [AUTHZ]: {
        "@type": `${EXTENSIONS}.filters.http.ext_authz.v3.ExtAuthzPerRoute`,
        check_settings: settings,
      },
    },
  };
}

function bodyRoute({ authority, methods, path, contentType, maxBytes }: SidecarBodyRule): Json {
  const headers: Json[] = [
    { name: ":authority", string_match: { safe_regex: { regex: authority } } },
  ];
  if (methods !== undefined)
    headers.push({ name: ":method", string_match: { safe_regex: { regex: methods.join("|") } } });
  if (contentType !== undefined)
    headers.push({ name: "content-type", string_match: { safe_regex: { regex: contentType } } });
  const settings =
    maxBytes === undefined
      ? undefined
      : {
          with_request_body: {
            max_request_bytes: maxBytes,
            allow_partial_message: false,
            pack_as_bytes: true,
          },
        };
  return route({ safe_regex: { regex: path }, headers }, UPSTREAM, settings);
}

/**
 * The authorizer sets the destination in the request's metadata; the certificate there must be
 * valid for the requested host.
 */
function upstream(name: string, caFile: string, protocol: Json): Json {
  return {
    name,
    type: "ORIGINAL_DST",
    lb_policy: "CLUSTER_PROVIDED",
    connect_timeout: "10s",
    cleanup_interval: "60s",
    per_connection_buffer_limit_bytes: 1_048_576,
    original_dst_lb_config: { metadata_key: { key: AUTHZ, path: [{ key: "upstream" }] } },
    circuit_breakers: {
      thresholds: [{ max_connections: 10_000, max_pending_requests: 10_000, max_requests: 10_000 }],
    },
    transport_socket: {
      name: "envoy.transport_sockets.tls",
      typed_config: {
        "@type": `${EXTENSIONS}.transport_sockets.tls.v3.UpstreamTlsContext`,
        common_tls_context: {
          tls_params: { tls_minimum_protocol_version: "TLSv1_2" },
          validation_context: { trusted_ca: { filename: caFile } },
        },
      },
    },
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": `${EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions`,
        upstream_http_protocol_options: { auto_sni: true, auto_san_validation: true },
        common_http_protocol_options: { idle_timeout: "300s" },
        ...protocol,
      },
    },
  };
}

function service(name: string, socket: string): Json {
  return {
    name,
    type: "STATIC",
    connect_timeout: "1s",
    circuit_breakers: {
      thresholds: [
        { max_connections: 100_000, max_pending_requests: 100_000, max_requests: 100_000 },
      ],
    },
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": `${EXTENSIONS}.upstreams.http.v3.HttpProtocolOptions`,
        explicit_http_config: {
          http2_protocol_options: { connection_keepalive: { interval: "10s", timeout: "5s" } },
        },
      },
    },
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: [{ endpoint: { address: { pipe: { path: socket } } } }] }],
    },
  };
}

function toGateway(): Json {
  return {
    name: "envoy.filters.network.tcp_proxy",
    typed_config: {
      "@type": `${EXTENSIONS}.filters.network.tcp_proxy.v3.TcpProxy`,
      stat_prefix: "gateway",
      cluster: "gateway",
      idle_timeout: CONNECTION_IDLE,
    },
  };
}

function gatewayCluster({
  address,
  port,
}: {
  readonly address: string;
  readonly port: number;
}): Json {
  return {
    name: "gateway",
    type: "STATIC",
    connect_timeout: "1s",
    load_assignment: {
      cluster_name: "gateway",
      endpoints: [
        {
          lb_endpoints: [
            { endpoint: { address: { socket_address: { address, port_value: port } } } },
          ],
        },
      ],
    },
  };
}
