/** Checks of the cluster itself: its version, its nodes, its network. */
import type { KubeKind, KubeObject } from "../../kubernetes/objects.ts";
import { type CheckResult, fail, ok, warn } from "../checks.ts";
import type { ClusterSession } from "./session.ts";

const NODE: KubeKind = { apiVersion: "v1", kind: "Node", plural: "nodes" };
const DAEMON_SET: KubeKind = { apiVersion: "apps/v1", kind: "DaemonSet", plural: "daemonsets" };

/** Since 1.29 sidecars are init containers that keep running, without a feature gate. */
const MIN_MINOR = 29;
/** Landlock, which confines the file system of agents. */
const LANDLOCK_KERNEL = [5, 13] as const;

/** @throws ApiError if the cluster cannot be reached */
export async function checkVersion({ connection }: ClusterSession): Promise<CheckResult> {
  const { major, minor, gitVersion } = (await connection.request("/version")) as {
    readonly major: string;
    readonly minor: string;
    readonly gitVersion: string;
  };
  return isRecent(Number(major), Number.parseInt(minor, 10))
    ? ok("kubernetes", `${gitVersion} at ${connection.server}`)
    : fail(
        "kubernetes",
        `${gitVersion} has no native sidecars: upgrade to 1.${MIN_MINOR} or later`,
      );
}

function isRecent(major: number, minor: number): boolean {
  return major > 1 || (major === 1 && minor >= MIN_MINOR);
}

interface NodeInfo {
  readonly operatingSystem: string;
  readonly architecture: string;
  readonly kernelVersion: string;
  readonly kubeletVersion: string;
}

/** @throws ApiError */
export async function checkNodes({ client }: ClusterSession): Promise<readonly CheckResult[]> {
  const { items } = await client.list(NODE);
  const checks = items.flatMap((node) => checkNode(node));
  return checks.length > 0
    ? checks
    : [ok("nodes", `${items.length} with Linux, kernel and kubelet of a supported version`)];
}

function checkNode(node: KubeObject): CheckResult[] {
  const { name } = node.metadata;
  const info = (node["status"] as { readonly nodeInfo?: NodeInfo } | undefined)?.nodeInfo;
  if (info === undefined) return [warn("nodes", `${name} has not reported itself yet`)];
  if (info.operatingSystem !== "linux")
    return [
      warn("nodes", `${name} runs ${info.operatingSystem}: keep agents off it with a nodeSelector`),
    ];
  const checks: CheckResult[] = [];
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(info.kubeletVersion) ?? [];
  if (!isRecent(Number(major), Number(minor)))
    checks.push(
      fail(
        "nodes",
        `${name} has kubelet ${info.kubeletVersion}: upgrade to 1.${MIN_MINOR} or later`,
      ),
    );
  const [, kernel, patch] = /^(\d+)\.(\d+)/.exec(info.kernelVersion) ?? [];
  const [wanted, wantedPatch] = LANDLOCK_KERNEL;
  if (Number(kernel) < wanted || (Number(kernel) === wanted && Number(patch) < wantedPatch))
    checks.push(
      warn(
        "nodes",
        `${name} has Linux ${info.kernelVersion}: spec.filesystem of Agents is enforced by the ` +
          `kernel from ${wanted}.${wantedPatch} on`,
      ),
    );
  return checks;
}

/** DaemonSets of network plugins that enforce NetworkPolicies. */
const ENFORCING =
  /^(?:calico-node|cilium|antrea-agent|kube-router|weave-net|aws-node|azure-npm|ovnkube-node|canal|anetd)$/;

/** @throws ApiError */
export async function checkNetworkPolicies({
  client,
}: ClusterSession): Promise<readonly CheckResult[]> {
  const { items } = await client.list(DAEMON_SET);
  const found = items.map(({ metadata }) => metadata.name).filter((name) => ENFORCING.test(name));
  return found.length > 0
    ? [ok("network policies", `${found.join(", ")} can enforce them`)]
    : [
        warn(
          "network policies",
          "no network plugin was recognised that enforces them. Without one, every pod can reach " +
            "the gateway, and only the packet rules limit agents. Ask the cluster's administrator.",
        ),
      ];
}
