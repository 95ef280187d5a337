/** Checks that the cluster's CustomResourceDefinitions are those of this version. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { parse } from "yaml";
import type { KubeKind, KubeObject } from "../../kubernetes/objects.ts";
import { API_VERSION } from "../../resources/metadata.ts";
import { type CheckResult, fail, ok } from "../checks.ts";
import type { ClusterSession } from "./session.ts";

const CRD: KubeKind = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
};
const FIX = "Install this version's: svc install, or kubectl apply --server-side -f crds/.";

interface CrdSpec {
  readonly versions: readonly { readonly name: string; readonly schema?: unknown }[];
}

/** @param root of the package @throws ApiError */
export async function checkKinds(
  { client }: ClusterSession,
  root: string,
): Promise<readonly CheckResult[]> {
  const { items } = await client.list(CRD);
  const found = new Map(items.map((crd) => [crd.metadata.name, crd]));
  const dir = path.join(root, "crds");
  const wanted = readdirSync(dir)
    .filter((file) => file.endsWith(".yaml"))
    .map((file) => parse(readFileSync(path.join(dir, file), "utf8")) as KubeObject);
  const faults = wanted.flatMap((crd): CheckResult[] => {
    const { name } = crd.metadata;
    const installed = found.get(name);
    if (installed === undefined) return [fail("kinds", `${name} does not exist. ${FIX}`)];
    if (!isEstablished(installed))
      return [fail("kinds", `${name} is not served yet. Check again.`)];
    return isDeepStrictEqual(schemaOf(installed), schemaOf(crd))
      ? []
      : [fail("kinds", `${name} is of another version than this command. ${FIX}`)];
  });
  return faults.length > 0 ? faults : [ok("kinds", `${wanted.length} of ${API_VERSION}`)];
}

function schemaOf(crd: KubeObject): unknown {
  const version = API_VERSION.split("/")[1];
  return (crd["spec"] as CrdSpec).versions.find(({ name }) => name === version)?.schema;
}

function isEstablished(crd: KubeObject): boolean {
  const { conditions = [] } = (crd["status"] ?? {}) as {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
  return conditions.some(({ type, status }) => type === "Established" && status === "True");
}
