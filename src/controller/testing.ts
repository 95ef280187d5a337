/** Test helpers: resources from a text, a configuration, and surroundings without a cluster. */
import type { CompileOptions } from "../compile/compile.ts";
import { plugins } from "../providers/registry.ts";
import { parseObject } from "../resources/parse.ts";
import { buildResourceSet } from "../resources/resource-set.ts";
import { readDocuments } from "../resources/yaml.ts";
import { type LoadResult, NO_GENERATIONS } from "../sources/load-result.ts";
import { type ControllerConfig, controllerConfigSchema } from "./config.ts";
import type { Surroundings } from "./plan.ts";

export function testConfig(settings: object = {}): ControllerConfig {
  return controllerConfigSchema.parse({
    images: { proxy: "registry.example/svc-proxy:1", svc: "registry.example/svc:1" },
    gateway: { host: "svc-gateway.svc-system.svc.cluster.local" },
    ...settings,
  });
}

/** Tokens and digests are made of names. */
export function surroundingsOf(config: ControllerConfig): Surroundings {
  return {
    config,
    dnsServers: ["10.96.0.10"],
    gateway: { address: "10.96.0.20" },
    tokenOf: (namespace, name) => `svcw_${namespace}_${name}`,
    uidOf: ({ name }) => `uid-of-${name}`,
    digestOf: (namespace, { name, key }) => `${namespace}/${name}/${key}`,
  };
}

/** Reads documents as the controller does. @throws Error for one that is refused */
export function loadManifests(text: string): { load: LoadResult; options: CompileOptions } {
  const resources = readDocuments(text).map(({ document }) => {
    const parsed = parseObject(document.toJS(), "controller");
    if (parsed.kind === "refused")
      throw new Error(parsed.findings.map(({ message }) => message).join("; "));
    return parsed.resource;
  });
  return {
    load: { resources: buildResourceSet(resources), problems: [], generations: NO_GENERATIONS },
    options: {
      env: {},
      now: 0,
      tokenHashesOf: () => [],
      guardEndpoint: undefined,
      mockEndpoint: undefined,
      service: (type) => plugins.get(type),
    },
  };
}
