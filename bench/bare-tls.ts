/**
 * Bare Envoy as the baseline of the sidecar: it terminates TLS, injects the credential, and opens a
 * new TLS connection. No access log.
 */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { freePort, type Processes, until } from "./processes.ts";
import { REAL_TOKEN } from "./service.ts";
import { answers, type TlsTarget } from "./tls-target.ts";

export interface BareTlsOptions {
  readonly binary: string;
  readonly dir: string;
  readonly processes: Processes;
  readonly upstreamPort: number;
  /** PEM files: of the service's own authority, and the certificate that it shows to clients. */
  readonly files: {
    readonly authority: string;
    readonly certificate: string;
    readonly key: string;
  };
}

const type = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;

function config(port: number, { upstreamPort, files }: BareTlsOptions): object {
  const address = (portValue: number): object => ({
    socket_address: { address: "127.0.0.1", port_value: portValue },
  });
  const downstream = {
    "@type": type("transport_sockets.tls.v3.DownstreamTlsContext"),
    // As the sidecar's.
    disable_stateless_session_resumption: true,
    disable_stateful_session_resumption: true,
    common_tls_context: {
      alpn_protocols: ["h2", "http/1.1"],
      tls_certificates: [
        {
          certificate_chain: { filename: files.certificate },
          private_key: { filename: files.key },
        },
      ],
    },
  };
  const connectionManager = {
    "@type": type("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "bare",
    http_filters: [
      {
        name: "envoy.filters.http.router",
        typed_config: { "@type": type("filters.http.router.v3.Router") },
      },
    ],
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          request_headers_to_add: [
            {
              header: { key: "authorization", value: `token ${REAL_TOKEN}` },
              append_action: "OVERWRITE_IF_EXISTS_OR_ADD",
            },
          ],
          routes: [{ match: { prefix: "/" }, route: { cluster: "service", timeout: "0s" } }],
        },
      ],
    },
  };
  const upstream = {
    "@type": type("transport_sockets.tls.v3.UpstreamTlsContext"),
    common_tls_context: { validation_context: { trusted_ca: { filename: files.authority } } },
  };
  const protocol = {
    "@type": type("upstreams.http.v3.HttpProtocolOptions"),
    upstream_http_protocol_options: { auto_sni: true, auto_san_validation: true },
    auto_config: { http2_protocol_options: {}, http_protocol_options: {} },
  };
  return {
    static_resources: {
      listeners: [
        {
          name: "bare",
          address: address(port),
          filter_chains: [
            {
              filters: [
                {
                  name: "envoy.filters.network.http_connection_manager",
                  typed_config: connectionManager,
                },
              ],
              transport_socket: { name: "envoy.transport_sockets.tls", typed_config: downstream },
            },
          ],
        },
      ],
      clusters: [
        {
          name: "service",
          type: "STATIC",
          connect_timeout: "1s",
          load_assignment: {
            cluster_name: "service",
            endpoints: [{ lb_endpoints: [{ endpoint: { address: address(upstreamPort) } }] }],
          },
          transport_socket: { name: "envoy.transport_sockets.tls", typed_config: upstream },
          typed_extension_protocol_options: {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": protocol,
          },
        },
      ],
    },
  };
}

export async function startBareTls(options: BareTlsOptions): Promise<TlsTarget> {
  const { binary, dir, processes, files } = options;
  const port = await freePort();
  const file = path.join(dir, "bare-tls.json");
  writeFileSync(file, JSON.stringify(config(port, options)));
  const child = processes.start({
    place: "measured",
    command: binary,
    args: [
      "--config-path",
      file,
      "--disable-hot-restart",
      "--concurrency",
      "1",
      "--log-level",
      "warning",
    ],
    log: path.join(dir, "bare-tls.log"),
  });
  const target = {
    name: "bare Envoy",
    port,
    caFile: files.authority,
    tree: { pid: child.pid ?? 0, name: "Envoy", named: [] },
  };
  await until(async () => answers(target), child, "bare Envoy");
  return target;
}
