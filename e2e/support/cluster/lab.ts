/** A real Kubernetes cluster with one node, for tests: the scripts of `e2e/cluster/lab`. */
import { execFileSync } from "node:child_process";
import { Resolver } from "node:dns/promises";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { until } from "../wait.ts";
import { run } from "./run.ts";

const ROOT = path.resolve(import.meta.dirname, "../../..");
const SCRIPTS = path.join(ROOT, "e2e/cluster/lab");

/** Folder of the image archives that `images/build.sh` writes. */
export const IMAGES = path.join(ROOT, "images/out");

export interface Lab {
  /** File with the rights of a cluster administrator. */
  readonly kubeconfig: string;
  /** Address of this machine that pods reach. */
  readonly hostAddress: string;
  /** Address of the node: the API server, node ports and the cluster's DNS. */
  readonly nodeAddress: string;
  /** Address of the DNS server that pods are given. */
  readonly dnsAddress: string;
  /** Socket of a container engine that serves Docker's API; it publishes ports on the node. */
  readonly engineSocket: string;
  /** @returns the standard output; @throws CommandError */
  kubectl(args: readonly string[], input?: string): Promise<string>;
  /** @returns the standard output; @throws CommandError */
  helm(args: readonly string[], input?: string): Promise<string>;
  /** Runs a command in the node's mount, network and process namespaces. */
  exec(command: readonly string[], input?: string): Promise<string>;
  /** Makes `NAME.tar` available to pods as `localhost/NAME:dev`. */
  importImage(archive: string): Promise<void>;
  /**
   * Replaces the names outside of the cluster that its DNS knows, by name; all others do not exist.
   * Resolves when the DNS answers with them.
   */
  setHosts(addresses: Readonly<Record<string, string>>): Promise<void>;
  stop(): Promise<void>;
}

/** Starts the cluster, or returns the one that runs. Needs root, and minutes for the first time. */
export async function startLab(): Promise<Lab> {
  await run([path.join(SCRIPTS, "start.sh"), path.join(IMAGES, "pause.tar")]);
  return attachLab();
}

/** The cluster that the tests' global setup has started. */
export function attachLab(): Lab {
  const settings = readSettings();
  const env = { ...process.env, KUBECONFIG: settings.KUBECONFIG };
  const script = (name: string, args: readonly string[], input?: string): Promise<string> =>
    run([path.join(SCRIPTS, name), ...args], { input });
  return {
    kubeconfig: settings.KUBECONFIG,
    hostAddress: settings.HOST_IP,
    nodeAddress: settings.NODE_IP,
    dnsAddress: settings.DNS_IP,
    engineSocket: settings.ENGINE_SOCKET,
    kubectl: (args, input) => run([path.join(settings.BIN, "kubectl"), ...args], { input, env }),
    helm: (args, input) => run([path.join(settings.BIN, "helm"), ...args], { input, env }),
    exec: (command, input) => script("exec.sh", command, input),
    importImage: async (archive) => void (await script("import.sh", [archive])),
    setHosts: (addresses) =>
      setHosts(path.join(settings.LAB, "hosts"), settings.NODE_IP, addresses),
    stop: async () => void (await script("stop.sh", [])),
  };
}

type Settings = Readonly<Record<(typeof SETTINGS)[number], string>>;
const SETTINGS = [
  "LAB",
  "BIN",
  "KUBECONFIG",
  "HOST_IP",
  "NODE_IP",
  "DNS_IP",
  "ENGINE_SOCKET",
] as const;

/** The scripts' own settings, so that there is one place for them. */
function readSettings(): Settings {
  const show = SETTINGS.map((name) => `echo "$${name}"`).join("; ");
  const values = execFileSync("bash", ["-c", `. "$1"; ${show}`, "bash", `${SCRIPTS}/env.sh`], {
    encoding: "utf8",
  }).split("\n");
  return Object.fromEntries(SETTINGS.map((name, i) => [name, values[i]])) as Settings;
}

async function setHosts(
  file: string,
  server: string,
  addresses: Readonly<Record<string, string>>,
): Promise<void> {
  const before = readFileSync(file, "utf8").match(/\S+$/gm) ?? [];
  const lines = Object.entries(addresses).map(([name, address]) => `${address} ${name}\n`);
  writeFileSync(file, lines.join(""));
  const resolver = new Resolver({ timeout: 1000 });
  resolver.setServers([server]);
  for (const name of new Set([...before, ...Object.keys(addresses)]))
    await until(
      async () => {
        const found = await resolver.resolve4(name).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== "ENOTFOUND") throw error;
          return [];
        });
        return found[0] === addresses[name];
      },
      { what: `the cluster's DNS to answer for ${name}` },
    );
}
