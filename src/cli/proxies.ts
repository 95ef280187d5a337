/** Formats the state of the Envoys for `svc proxy-status`. */
import type { NodeStatus, TypeStatus } from "../envoy/xds/ads.ts";
import { table } from "./table.ts";

export interface ProxyReport {
  readonly gateways: readonly GatewayProxy[];
  readonly sidecars: readonly SidecarProxy[];
}

/** A gateway, and the Envoys that it configures. */
export interface GatewayProxy {
  /** Name of the pod, or of the Envoy on one machine. */
  readonly name: string;
  readonly ready: boolean;
  /** Why it is not ready, or cannot be asked; undefined if there is nothing to say. */
  readonly problem: string | undefined;
  readonly envoys: readonly NodeStatus[];
}

export interface SidecarProxy {
  readonly namespace: string;
  readonly pod: string;
  readonly agent: string;
  readonly ready: boolean;
  readonly restarts: number;
  /**
   * Whether the newest version of its providers' file is in force; `restart-needed`: but for
   * changes that take effect when the pod restarts. undefined if that is not known.
   */
  readonly policy: "in-force" | "outdated" | "restart-needed" | undefined;
  readonly problem: string | undefined;
}

/** Returns whether every proxy is ready and has its whole configuration. */
export function isInSync({ gateways, sidecars }: ProxyReport): boolean {
  return (
    gateways.length > 0 &&
    gateways.every(
      ({ ready, envoys }) =>
        ready && envoys.every(({ inSync, nacks }) => inSync && nacks.length === 0),
    ) &&
    sidecars.every(({ ready, policy }) => ready && policy !== "outdated")
  );
}

export function renderProxies({ gateways, sidecars }: ProxyReport): string {
  const lines: string[] = [];
  if (gateways.length === 0) lines.push("There is no gateway.");
  else
    lines.push(
      table(
        ["GATEWAY", "READY", "CLUSTERS", "LISTENERS", "ROUTES"],
        gateways.flatMap(({ name, ready, envoys }) =>
          (envoys.length === 0 ? [undefined] : envoys).map((envoy) => [
            name,
            ready ? "yes" : "no",
            ...(["cluster", "listener", "route"] as const).map((type) => stateOf(envoy, type)),
          ]),
        ),
      ),
    );
  for (const { name, problem, envoys } of gateways) {
    if (problem !== undefined) lines.push("", `${name}: ${problem}`);
    for (const { node, nacks } of envoys)
      for (const { type, message, resources } of nacks)
        lines.push("", `Envoy ${node} rejected a ${type} (${resources.join(", ")}): ${message}`);
  }
  if (sidecars.length === 0) return lines.join("\n");
  lines.push(
    "",
    table(
      ["NAMESPACE", "SIDECAR", "AGENT", "READY", "POLICY", "RESTARTS", "MESSAGE"],
      sidecars.map((sidecar) => [
        sidecar.namespace,
        sidecar.pod,
        sidecar.agent,
        sidecar.ready ? "yes" : "no",
        sidecar.policy ?? "-",
        String(sidecar.restarts),
        sidecar.problem ?? "",
      ]),
    ),
  );
  return lines.join("\n");
}

const STATE = { acknowledged: "ACK", rejected: "NACK", pending: "WAITS" } as const;

/** `ACK 1c04e6aefc1a (12)`: the answer, the version and the number of resources. */
function stateOf(envoy: NodeStatus | undefined, type: TypeStatus["type"]): string {
  // A gateway of an earlier version does not report its types.
  const found = envoy?.types?.find((one) => one.type === type);
  return found === undefined ? "-" : `${STATE[found.state]} ${found.version} (${found.resources})`;
}
