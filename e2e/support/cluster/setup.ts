/** Builds the program and its images, and starts the cluster, once before the cluster's tests. */
import { execFileSync } from "node:child_process";
import path from "node:path";
import build, { ROOT } from "../build.ts";
import { IMAGES, startLab } from "./lab.ts";

const NAMES = ["pause", "svc", "svc-proxy", "svc-guard", "agent", "redis"] as const;

export default async function setup(): Promise<() => Promise<void>> {
  build();
  execFileSync(path.join(ROOT, "images/build.sh"), NAMES, { stdio: "inherit" });
  const lab = await startLab();
  for (const name of NAMES) await lab.importImage(path.join(IMAGES, `${name}.tar`));
  return async () => {
    if (process.env["SVC_LAB_KEEP"] !== "1") await lab.stop();
  };
}
