/** An installation of the chart in the laboratory, with images built here. */
import path from "node:path";
import { ROOT } from "../build.ts";
import type { Lab } from "./lab.ts";

export const SYSTEM = "svc-system";

export interface InstallOptions {
  /** Values as `--set` has them. */
  readonly values?: Readonly<Record<string, string | number | boolean>>;
  /** Folder of another version of the chart. */
  readonly chart?: string;
  /** Whether the Deployments are waited for. @defaultValue true */
  readonly wait?: boolean;
}

/** Small requests, so that everything fits on the one node. */
const VALUES = {
  "images.registry": "localhost",
  "images.tag": "dev",
  "images.pullPolicy": "Never",
  "redis.enabled": false,
  "gateway.mock": true,
  "gateway.replicas": 1,
  "gateway.resources.requests.cpu": "20m",
  "gateway.resources.requests.memory": "64Mi",
  "gateway.drainDelaySeconds": 1,
  "gateway.statusIntervalSeconds": 1,
  "controller.replicas": 1,
  "controller.resources.requests.cpu": "10m",
  "controller.resources.requests.memory": "64Mi",
  "agents.sidecar.pollSeconds": 1,
  "agents.sidecar.resources.requests.cpu": "1m",
  "agents.sidecar.resources.requests.memory": "16Mi",
} as const;

/** Installs the chart, or upgrades it, and waits until the Deployments are ready. */
export async function install(
  lab: Lab,
  { values = {}, chart = path.join(ROOT, "charts/svc"), wait = true }: InstallOptions = {},
): Promise<void> {
  const settings = Object.entries({ ...VALUES, ...values }).flatMap(([name, value]) => [
    "--set",
    `${name}=${value}`,
  ]);
  await lab.helm([
    "upgrade",
    "--install",
    "svc",
    chart,
    "--namespace",
    SYSTEM,
    "--create-namespace",
    ...(wait ? ["--wait", "--timeout", "300s"] : []),
    ...settings,
  ]);
}

/** Removes the installation, and with it its CRDs and all of their objects. */
export async function uninstall(lab: Lab): Promise<void> {
  await lab.helm(["uninstall", "svc", "--namespace", SYSTEM, "--wait", "--ignore-not-found"]);
  await lab.kubectl(["delete", "namespace", SYSTEM, "--ignore-not-found"]);
  await lab.kubectl(["delete", "--ignore-not-found", `--filename=${path.join(ROOT, "crds")}`]);
}

/** One of our objects, as YAML that kubectl takes. */
export function manifest(kind: string, name: string, spec: object): string {
  return `${JSON.stringify({ apiVersion: "svc.io/v1", kind, metadata: { name }, spec })}\n---\n`;
}

export function secret(name: string, stringData: Readonly<Record<string, string>>): string {
  const object = { apiVersion: "v1", kind: "Secret", metadata: { name }, stringData };
  return `${JSON.stringify(object)}\n---\n`;
}
