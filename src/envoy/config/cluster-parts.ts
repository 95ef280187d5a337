/** Parts of clusters of the gateway's and the sidecar's configurations. */
import { isIP } from "node:net";
import type { Address, Cluster, Messages, TransportSocket } from "../../gen/messages.ts";
import { Extension, extension, typed } from "./extensions.ts";

/** Builds the address of an IP address, or a host name, and a port. */
export function socketAddress(address: string, portValue: number): Address {
  return { socketAddress: { address, portValue } };
}

/** Builds the address of a Unix socket. */
export function unixSocket(path: string): Address {
  return { pipe: { path } };
}

/** Builds the fields of a cluster that has one endpoint. */
export function oneEndpoint(
  name: string,
  address: Address,
): Pick<Cluster, "name" | "type" | "loadAssignment"> {
  return {
    name,
    type: "STATIC",
    loadAssignment: {
      clusterName: name,
      endpoints: [{ lbEndpoints: [{ endpoint: { address } }] }],
    },
  };
}

const HTTP_PROTOCOL_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/** HTTP settings of a cluster. */
export type HttpOptions = Messages[typeof HTTP_PROTOCOL_OPTIONS];

/** Builds a cluster's HTTP settings. */
export function httpOptions(options: HttpOptions): Pick<Cluster, "typedExtensionProtocolOptions"> {
  return {
    typedExtensionProtocolOptions: {
      [HTTP_PROTOCOL_OPTIONS]: typed(HTTP_PROTOCOL_OPTIONS, options),
    },
  };
}

export interface UpstreamTlsOptions {
  /** PEM bundle against which the server's certificate is verified. */
  readonly caFile: string;
  /** Host that the certificate must name; undefined if the cluster's settings demand one. */
  readonly host?: string;
}

/** Builds the TLS of connections to a server. */
export function upstreamTls({ caFile, host }: UpstreamTlsOptions): TransportSocket {
  const named = host !== undefined && isIP(host) === 0;
  return extension(Extension.upstreamTls, {
    sni: named ? host : undefined,
    commonTlsContext: {
      tlsParams: { tlsMinimumProtocolVersion: "TLSv1_2" },
      validationContext: {
        trustedCa: { filename: caFile },
        matchTypedSubjectAltNames:
          host === undefined
            ? undefined
            : [{ sanType: named ? "DNS" : "IP_ADDRESS", matcher: { exact: host } }],
      },
    },
  });
}
