/** Envoy's extensions that the configurations use, and builders of their typed settings. */
import type { Messages } from "../../gen/messages.ts";
import type { NewerMessages } from "./newer.ts";

type AllMessages = Messages & NewerMessages;

/** Full name of a protobuf message. */
export type MessageName = keyof AllMessages;

/** TypedConfig is a `google.protobuf.Any` in JSON form, with the fields of its message. */
export type TypedConfig<N extends MessageName = MessageName> = {
  readonly "@type": `type.googleapis.com/${N}`;
} & AllMessages[N];

interface ExtensionKind {
  /** Name by which Envoy lists the extension. */
  readonly name: string;
  /** Message of its settings. */
  readonly message: MessageName;
}

const HTTP_FILTERS = "envoy.extensions.filters.http";
const NETWORK_FILTERS = "envoy.extensions.filters.network";
const TLS = "envoy.extensions.transport_sockets.tls";

/** Extension lists the extensions that the configurations use. */
export const Extension = {
  router: { name: "envoy.filters.http.router", message: `${HTTP_FILTERS}.router.v3.Router` },
  extProc: {
    name: "envoy.filters.http.ext_proc",
    message: `${HTTP_FILTERS}.ext_proc.v3.ExternalProcessor`,
  },
  extAuthz: {
    name: "envoy.filters.http.ext_authz",
    message: `${HTTP_FILTERS}.ext_authz.v3.ExtAuthz`,
  },
  lua: { name: "envoy.filters.http.lua", message: `${HTTP_FILTERS}.lua.v3.Lua` },
  connectionManager: {
    name: "envoy.filters.network.http_connection_manager",
    message: `${NETWORK_FILTERS}.http_connection_manager.v3.HttpConnectionManager`,
  },
  tcpProxy: {
    name: "envoy.filters.network.tcp_proxy",
    message: `${NETWORK_FILTERS}.tcp_proxy.v3.TcpProxy`,
  },
  tlsInspector: {
    name: "envoy.filters.listener.tls_inspector",
    message: "envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector",
  },
  earlyHeaderMutation: {
    name: "envoy.http.early_header_mutation.header_mutation",
    message: "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation",
  },
  celFilter: {
    name: "envoy.access_loggers.extension_filters.cel",
    message: "envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter",
  },
  previousPriorities: {
    name: "envoy.retry_priorities.previous_priorities",
    message: "envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig",
  },
  aggregate: {
    name: "envoy.clusters.aggregate",
    message: "envoy.extensions.clusters.aggregate.v3.ClusterConfig",
  },
  upstreamTls: {
    name: "envoy.transport_sockets.tls",
    message: `${TLS}.v3.UpstreamTlsContext`,
  },
  downstreamTls: {
    name: "envoy.transport_sockets.tls",
    message: `${TLS}.v3.DownstreamTlsContext`,
  },
  onDemandCertificates: {
    name: "on-demand",
    message: `${TLS}.cert_selectors.on_demand_secret.v3.Config`,
  },
  certificateByServerName: { name: "sni", message: `${TLS}.cert_mappers.sni.v3.SNI` },
} as const satisfies Readonly<Record<string, ExtensionKind>>;

/** A named extension and its settings, as most of Envoy's messages contain it. */
export interface ExtensionConfig<N extends MessageName = MessageName> {
  readonly name: string;
  readonly typedConfig: TypedConfig<N>;
}

/** Builds a `typed_config` of the named message. */
export function typed<N extends MessageName>(message: N, fields: AllMessages[N]): TypedConfig<N> {
  return { "@type": `type.googleapis.com/${message}`, ...fields };
}

/** Builds an extension with its settings. */
export function extension<const K extends ExtensionKind>(
  { name, message }: K,
  settings: AllMessages[K["message"]],
): ExtensionConfig<K["message"]> {
  return { name, typedConfig: typed<K["message"]>(message, settings) };
}

/**
 * Builds an extension whose settings are a TypedStruct, which Envoy decodes with its own
 * definitions: for fields that our copy of the definitions lacks (see newer.ts).
 */
export function newerExtension<const K extends ExtensionKind>(
  { name, message }: K,
  settings: AllMessages[K["message"]],
): ExtensionConfig<"xds.type.v3.TypedStruct"> {
  return {
    name,
    typedConfig: typed("xds.type.v3.TypedStruct", {
      typeUrl: `type.googleapis.com/${message}`,
      value: { ...settings },
    }),
  };
}
