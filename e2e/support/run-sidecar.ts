/**
 * Replaces the sidecar service in tests of `svc run` itself: the real certificates and trust, and
 * an Envoy that answers every bound host itself. Accepts the same options, and reads the bound
 * hosts from the spec file.
 */
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { CertificateAuthority } from "../../src/interception/ca.ts";
import { writeTrust } from "../../src/interception/trust.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { unixRequest } from "../../src/platform/unix-http.ts";

interface Listen {
  readonly address: string;
  readonly port: number;
  readonly netns?: string;
}

interface Options {
  readonly specFile: string;
  readonly runDir: string;
  readonly trustDir: string;
  readonly upstreamCaFile: string;
  readonly listen: {
    readonly http: Listen;
    readonly https: Listen;
    readonly gateway?: Listen & {
      readonly target: { readonly address: string; readonly port: number };
    };
  };
}

const options = JSON.parse(process.argv[2] ?? "{}") as Options;
const { hosts } = JSON.parse(readFileSync(options.specFile, "utf8")) as { hosts: string[] };
const ca = new CertificateAuthority({
  clock: systemClock,
  random: randomBytes,
  names: { hosts, patterns: [] },
});
writeTrust(options.trustDir, {
  authorities: ca.certificatesPem,
  systemRoots: readFileSync(options.upstreamCaFile, "utf8"),
});

const EXTENSIONS = "type.googleapis.com/envoy.extensions";

function address({ address, port, netns }: Listen): object {
  return { socket_address: { address, port_value: port, network_namespace_filepath: netns } };
}

function answering(name: string, text: string): object {
  return {
    name: "envoy.filters.network.http_connection_manager",
    typed_config: {
      "@type": `${EXTENSIONS}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
      stat_prefix: name,
      route_config: {
        virtual_hosts: [
          {
            name,
            domains: ["*"],
            routes: [
              {
                match: { prefix: "/" },
                direct_response: { status: 200, body: { inline_string: text } },
              },
            ],
          },
        ],
      },
      http_filters: [
        {
          name: "envoy.filters.http.router",
          typed_config: { "@type": `${EXTENSIONS}.filters.http.router.v3.Router` },
        },
      ],
    },
  };
}

const chains = hosts.map((host) => {
  const { certificateChainPem = "", privateKeyPem = "" } = ca.mint(host) ?? {};
  const certificate = {
    certificate_chain: { inline_string: certificateChainPem },
    private_key: { inline_string: privateKeyPem },
  };
  return {
    filter_chain_match: { server_names: [host] },
    filters: [answering(host, `intercepted ${host}\n`)],
    transport_socket: {
      name: "envoy.transport_sockets.tls",
      typed_config: {
        "@type": `${EXTENSIONS}.transport_sockets.tls.v3.DownstreamTlsContext`,
        common_tls_context: { tls_certificates: [certificate] },
      },
    },
  };
});
const { gateway } = options.listen;
const target =
  gateway === undefined
    ? []
    : [{ lb_endpoints: [{ endpoint: { address: address(gateway.target) } }] }];
const tcpProxy = {
  "@type": `${EXTENSIONS}.filters.network.tcp_proxy.v3.TcpProxy`,
  stat_prefix: "gateway",
  cluster: "gateway",
};
writeFileSync(
  path.join(options.runDir, "envoy.json"),
  JSON.stringify({
    admin: {
      address: { pipe: { path: path.join(options.runDir, "envoy-admin.sock"), mode: 0o600 } },
    },
    static_resources: {
      listeners: [
        {
          name: "http",
          address: address(options.listen.http),
          filter_chains: [{ filters: [answering("http", "intercepted\n")] }],
        },
        {
          name: "https",
          address: address(options.listen.https),
          listener_filters: [
            {
              name: "tls",
              typed_config: {
                "@type": `${EXTENSIONS}.filters.listener.tls_inspector.v3.TlsInspector`,
              },
            },
          ],
          filter_chains: chains,
        },
        ...(gateway === undefined
          ? []
          : [
              {
                name: "gateway",
                address: address(gateway),
                filter_chains: [{ filters: [{ name: "tcp", typed_config: tcpProxy }] }],
              },
            ]),
      ],
      clusters: [
        {
          name: "gateway",
          type: "STATIC",
          load_assignment: { cluster_name: "gateway", endpoints: target },
        },
      ],
    },
  }),
);

const server = http.createServer((_request, response) => {
  unixRequest(path.join(options.runDir, "envoy-admin.sock"), "/ready").then(
    ({ status }) => response.writeHead(status).end(),
    () => response.writeHead(503).end(),
  );
});
server.listen(path.join(options.runDir, "sidecar.sock"));
process.once("SIGTERM", () => process.exit(0));
