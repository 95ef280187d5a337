/**
 * Runs before each file of the cluster's tests: the kinds of an earlier file, which was ended or
 * had applied them by itself, would be a conflict for Helm.
 */
import path from "node:path";
import { ROOT } from "../build.ts";
import { attachLab } from "./lab.ts";

await attachLab().kubectl([
  "delete",
  "--ignore-not-found",
  "--wait",
  `--filename=${path.join(ROOT, "crds")}`,
]);
