import { describe, expect, test } from "vitest";
import { BUFFER_LIMIT_BYTES } from "./names.ts";
import { callerRoutes } from "./routes.ts";
import {
  CallerListener,
  checkSurfaces,
  type ProcessorEndpoint,
  processorsOf,
  servicesOf,
  type Surface,
} from "./surface.ts";

const processor = (name: string, fields: Partial<ProcessorEndpoint> = {}): ProcessorEndpoint => ({
  name,
  socket: `${name}.sock`,
  headers: [],
  mode: {},
  changesMode: false,
  messageTimeoutMs: 1_000,
  seesRequestsWithoutRoute: false,
  ...fields,
});

const SERVICE = { name: "node", socket: "node.sock" };

const surface = (name: string, fields: Partial<Surface> = {}): Surface => ({
  name,
  listeners: [CallerListener.internal],
  paths: [{ kind: "exact", path: `/${name}` }],
  methods: undefined,
  destination: { kind: "service", service: SERVICE, processor: undefined },
  bodyLimitBytes: undefined,
  timeouts: { answerMs: undefined, idleMs: undefined },
  ...fields,
});

const processed = (one: ProcessorEndpoint): Partial<Surface> => ({
  destination: { kind: "service", service: SERVICE, processor: one },
});

describe("checkSurfaces", () => {
  test.each<[string, readonly Surface[]]>([
    ["no surface", []],
    [
      "one path with two methods",
      [
        surface("a", { methods: ["GET"] }),
        surface("b", { paths: [{ kind: "exact", path: "/a" }], methods: ["POST"] }),
      ],
    ],
    [
      "one path on two listeners",
      [
        surface("a"),
        surface("b", {
          paths: [{ kind: "exact", path: "/a" }],
          listeners: [CallerListener.external],
        }),
      ],
    ],
    ["one service of two surfaces", [surface("a"), surface("b")]],
    ["the largest body", [surface("a", { bodyLimitBytes: BUFFER_LIMIT_BYTES - 1 })]],
  ])("accepts %s", (_what, surfaces) => {
    expect(() => checkSurfaces(surfaces)).not.toThrow();
  });

  test.each<[string, readonly Surface[], string]>([
    ["one name twice", [surface("a"), surface("a", { paths: [] })], "two surfaces are the same: a"],
    [
      "one path twice",
      [surface("a"), surface("b", { paths: [{ kind: "exact", path: "/a" }] })],
      "two paths of svc-gateway are the same",
    ],
    [
      "another endpoint of the same name",
      [surface("a", processed(processor("node")))],
      "two endpoints are the same: node",
    ],
    [
      "another endpoint on the same socket",
      [surface("a", processed(processor("p", { socket: "node.sock" })))],
      "two sockets are the same: node.sock",
    ],
    [
      "the name of a cluster that is always there",
      [surface("a", processed(processor("control")))],
      "two endpoints are the same: control",
    ],
    [
      "a body that Envoy cannot buffer",
      [surface("a", { bodyLimitBytes: BUFFER_LIMIT_BYTES })],
      "surface a: bodyLimitBytes",
    ],
    [
      "buffered bodies without a limit",
      [surface("a", processed(processor("p", { mode: { requestBodyMode: "BUFFERED" } })))],
      "surface a: bodies are buffered",
    ],
    [
      "two processors for requests without a route",
      ["a", "b"].map((name) =>
        surface(name, processed(processor(`p-${name}`, { seesRequestsWithoutRoute: true }))),
      ),
      "svc-gateway: several processors",
    ],
  ])("refuses %s", (_what, surfaces, problem) => {
    expect(() => checkSurfaces(surfaces)).toThrow(problem);
  });
});

test("processors and services of several surfaces are there once", () => {
  const shared = processor("p");
  const surfaces = [surface("a", processed(shared)), surface("b", processed(shared)), surface("c")];
  expect(processorsOf(surfaces)).toEqual([shared]);
  expect(servicesOf(surfaces)).toEqual([SERVICE]);
});

test("the order of the surfaces does not matter", () => {
  const surfaces = [
    surface("all", { paths: [{ kind: "prefix", path: "/" }] }),
    surface("below", { paths: [{ kind: "prefix", path: "/a/" }] }),
    surface("template", { paths: [{ kind: "template", regex: "/a/[a-z]+" }] }),
    surface("exact", { paths: [{ kind: "exact", path: "/a/b" }] }),
  ];
  const names = (list: readonly Surface[]) =>
    callerRoutes(CallerListener.external, list).virtualHosts?.[0]?.routes?.map(({ name }) => name);
  const expected = ["forwarded", "forwarded-mcp", "exact", "template", "below", "all", "nothing"];
  expect(names(surfaces)).toEqual(expected);
  expect(names(surfaces.toReversed())).toEqual(expected);
});

test("each route has its own processor enabled, and the others disabled", () => {
  const first = processor("first", { seesRequestsWithoutRoute: true });
  const second = processor("second");
  const routes = callerRoutes(CallerListener.internal, [
    surface("a", processed(first)),
    surface("b", processed(second)),
    surface("c"),
  ]).virtualHosts?.[0]?.routes;
  const PER_ROUTE = "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute";
  const disabled = { "envoy.filters.http.ext_proc.first": { "@type": PER_ROUTE, disabled: true } };
  const enabled = { "envoy.filters.http.ext_proc.second": { "@type": PER_ROUTE, overrides: {} } };
  expect(
    Object.fromEntries(
      (routes ?? []).map(({ name, typedPerFilterConfig }) => [name, typedPerFilterConfig]),
    ),
  ).toEqual({
    forwarded: undefined,
    a: undefined,
    b: { ...disabled, ...enabled },
    c: disabled,
    healthz: disabled,
  });
});

test("methods and timeouts are those of the surface", () => {
  const [, , one, several] =
    callerRoutes(CallerListener.internal, [
      surface("one", { methods: ["POST"], timeouts: { answerMs: 30_000, idleMs: 1_500 } }),
      surface("several", { methods: ["GET", "DELETE"] }),
    ]).virtualHosts?.[0]?.routes ?? [];
  expect(one).toMatchObject({
    match: { path: "/one", headers: [{ name: ":method", stringMatch: { exact: "POST" } }] },
    route: { cluster: "svc_node", timeout: "30s", idleTimeout: "1.5s" },
  });
  expect(several).toMatchObject({
    match: { headers: [{ name: ":method", stringMatch: { safeRegex: { regex: "GET|DELETE" } } }] },
    route: { timeout: "0s", idleTimeout: undefined },
  });
});
