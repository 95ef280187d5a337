/** Streams of MCP are silent for hours: no timer of Envoy may end one. */
import { expect, test } from "vitest";
import { compilePolicy } from "../../compile/policy.ts";
import { gatewaySurfaces } from "../../gateway/surfaces.ts";
import type { RouteAction } from "../../gen/messages.ts";
import { ATTEMPT_PROCESSOR } from "../../llm/surface.ts";
import { parseDocuments } from "../../resources/parse.ts";
import { buildResourceSet } from "../../resources/resource-set.ts";
import { mcpCluster } from "./names.ts";
import { compileEnvoy } from "./resources.ts";
import { CallerListener } from "./surface.ts";

const PROVIDER = `
apiVersion: svc.io/v1
kind: Provider
metadata: {name: server}
spec: {type: mcp, mcp: {url: "https://mcp.example.com/mcp"}, externalAccess: {enabled: true}}
`;

const { resources } = parseDocuments(PROVIDER, "server.yaml");
const { snapshot } = compilePolicy(buildResourceSet(resources), {
  env: {},
  now: 0,
  tokenHashesOf: () => [],
  guardEndpoint: undefined,
  mockEndpoint: undefined,
});
const config = compileEnvoy(snapshot, {
  gateway: { address: "127.0.0.1", port: 8000 },
  external: { address: "127.0.0.1", port: 8080 },
  caFile: "/ca.pem",
  runDir: "/run/svc",
  surfaces: gatewaySurfaces({ uploadIdleMs: 15_000 }),
  attempts: ATTEMPT_PROCESSOR,
});

/** Routes of the listeners that a stream passes, by `<listener> <route>`. */
const routes = new Map<string, RouteAction | undefined>(
  config.route.flatMap(({ name, virtualHosts }) =>
    (virtualHosts ?? []).flatMap((host) =>
      (host.routes ?? []).map((route) => [`${name} ${route.name}`, route.route] as const),
    ),
  ),
);

test.each([
  `${CallerListener.internal} forwarded-mcp`,
  `${CallerListener.external} forwarded-mcp`,
  `${CallerListener.loop} forwarded-mcp`,
  `${CallerListener.internal} mcp-old-transport`,
  `${CallerListener.external} mcp-old-transport`,
])("the route %s has no timeout", (name) => {
  expect(routes.get(name)).toMatchObject({ timeout: "0s", idleTimeout: "0s" });
});

test("the route from the bridge to a server has no timeout", () => {
  const relay = config.route.find(({ name }) => name === "svc-relay");
  const all = (relay?.virtualHosts ?? []).flatMap(({ routes: own }) => own ?? []);
  expect(all.length).toBeGreaterThan(0);
  for (const { route } of all) expect(route).toMatchObject({ timeout: "0s" });
});

test("no connection and no stream has a longest duration", () => {
  expect(JSON.stringify(config)).not.toMatch(/"max(?:Stream|Connection)Duration"/);
});

test("TCP finds clients and servers that are gone", () => {
  const [server] = snapshot.mcpServers.values();
  const name = server === undefined ? "" : mcpCluster(server);
  const cluster = config.cluster.find((one) => one.name === name);
  expect(cluster?.upstreamConnectionOptions?.tcpKeepalive).toEqual({
    keepaliveTime: 60,
    keepaliveInterval: 60,
  });
  for (const listener of [CallerListener.internal, CallerListener.external]) {
    const { socketOptions = [] } = config.listener.find((one) => one.name === listener) ?? {};
    expect(socketOptions.map(({ description, intValue }) => [description, intValue])).toEqual([
      ["keepalive", 1],
      ["seconds until a probe", 120],
      ["seconds between", 30],
      ["probes", 4],
    ]);
  }
});
