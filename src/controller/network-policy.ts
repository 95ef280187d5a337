/**
 * The NetworkPolicy of an agent's pods. It cannot tell the sidecar from the agent, which share an
 * address: it allows what either may do, and the packet rules in the pod limit the agent to
 * loopback and the gateway.
 */
import type { ControllerConfig } from "./config.ts";
import { selectorOf } from "./names.ts";
import type { PodManifest } from "./pod.ts";

/** @param hasServices whether the sidecar calls services outside */
export function networkPolicySpec(
  agent: string,
  hasServices: boolean,
  { gateway, networkPolicy, sidecar }: ControllerConfig,
): PodManifest {
  const [, gatewayNamespace = ""] = gateway.host.split(".");
  return {
    podSelector: { matchLabels: selectorOf(agent) },
    policyTypes: ["Ingress", "Egress"],
    ingress:
      networkPolicy.metricsFrom.length === 0
        ? []
        : [
            {
              from: networkPolicy.metricsFrom,
              ports: [{ protocol: "TCP", port: sidecar.metricsPort }],
            },
          ],
    egress: [
      {
        to: [
          {
            namespaceSelector: inNamespace(gatewayNamespace),
            podSelector: { matchLabels: gateway.podLabels },
          },
        ],
        ports: [{ protocol: "TCP", port: gateway.port }],
      },
      {
        to: [
          {
            namespaceSelector: inNamespace(networkPolicy.dnsNamespace),
            podSelector: { matchLabels: networkPolicy.dnsPodLabels },
          },
        ],
        ports: [
          { protocol: "UDP", port: 53 },
          { protocol: "TCP", port: 53 },
        ],
      },
      ...(hasServices ? [{ ports: [{ protocol: "TCP", port: 443 }] }] : []),
    ],
  };
}

function inNamespace(name: string): PodManifest {
  return { matchLabels: { "kubernetes.io/metadata.name": name } };
}
