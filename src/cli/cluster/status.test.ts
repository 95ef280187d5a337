/** The state of an installation, from an API server in memory. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { NodeStatus } from "../../envoy/xds/ads.ts";
import { isInSync, renderProxies } from "../proxies.ts";
import { readProxies } from "./proxies.ts";
import { readStatus } from "./status.ts";
import { FakeInstallation, GATEWAY_STATUS } from "./testing.ts";
import { addressOf } from "./views.ts";

let installation: FakeInstallation;
beforeEach(async () => {
  installation = await FakeInstallation.start();
});
afterEach(() => installation.close());

const audit = (state: string, freeBytes: number, rate: number): object => ({
  audit: { state, freeBytes, chainsBytes: 10, refusalsLeftOut: { rate, space: 0, failure: 0 } },
});

describe("the status", () => {
  test("of an installation that is well", async () => {
    expect(await readStatus(installation.session)).toMatchObject({
      ready: true,
      objects: [],
      problems: [],
    });
  });

  test("has the objects of all namespaces", async () => {
    for (const namespace of ["a", "b"])
      installation.put(addressOf("Agent"), {
        metadata: { name: "x", namespace },
        spec: {},
        status: { ready: namespace === "a", reason: "Ready", message: "" },
      });
    const { objects } = await readStatus(installation.session);
    expect(objects).toMatchObject([
      { kind: "Agent", namespace: "a", ready: true },
      { kind: "Agent", namespace: "b", ready: false },
    ]);
  });

  test.each<[string, () => void, string]>([
    [
      "a Deployment whose pods are not ready",
      () => installation.deployment("controller", 0),
      "Deployment svc-controller: 0 of 1 pods ready",
    ],
    [
      "a gateway that is not ready",
      () => installation.gateway("gw-1", { ...GATEWAY_STATUS, reason: "Envoy is new" }),
      "Pod gw-1: Envoy is new",
    ],
    [
      "a kind that is not served",
      () => installation.serve(["Agent", "ModelProvider", "AccessKey", "Provider", "Session"]),
      "the cluster does not serve the kind GuardBinding",
    ],
  ])("%s", async (_name, change, reason) => {
    change();
    expect(await readStatus(installation.session)).toMatchObject({ ready: false, reason });
  });

  test("no installation at all", async () => {
    const session = { ...installation.session, systemNamespace: "other" };
    expect((await readStatus(session)).reason).toBe(
      "there is no Deployment of the controller in the namespace other; " +
        "there is no Deployment of the gateway in the namespace other",
    );
  });

  test("a pod that does not answer is a problem, and the others are shown", async () => {
    installation.pod("gw-2");
    installation.gateway("gw-2", { message: "no route" }, 503);
    const { problems } = await readStatus(installation.session);
    expect(problems).toEqual(["Pod gw-2: it does not answer: no route"]);
  });

  test("the worst audit chain of several", async () => {
    installation.pod("gw-2");
    installation.gateway("gw-1", { ...GATEWAY_STATUS, ...audit("low", 100, 1) });
    installation.gateway("gw-2", { ...GATEWAY_STATUS, ...audit("ok", 50, 2) });
    expect((await readStatus(installation.session)).audit).toEqual({
      state: "low",
      freeBytes: 50,
      chainsBytes: 20,
      refusalsLeftOut: { rate: 3, space: 0, failure: 0 },
    });
  });
});

const envoy: NodeStatus = {
  node: "gw-1",
  inSync: true,
  nacks: [],
  types: [
    { type: "cluster", version: "c1", resources: 3, state: "acknowledged" },
    { type: "listener", version: "l1", resources: 2, state: "acknowledged" },
    { type: "route", version: "r1", resources: 1, state: "pending" },
  ],
};
const METRICS = "svc_binding_reload_ok 1\nsvc_binding_changes_waiting 0\n";

describe("the proxies", () => {
  beforeEach(() => {
    installation.gateway("gw-1", { ...GATEWAY_STATUS, envoys: [envoy] });
    installation.metricsOf("team", "svc-hello-1", 8090, METRICS);
  });

  test("of an installation that is well", async () => {
    const report = await readProxies(installation.session);
    expect(renderProxies(report)).toBe(
      [
        "GATEWAY  READY  CLUSTERS    LISTENERS   ROUTES",
        "gw-1     yes    ACK c1 (3)  ACK l1 (2)  WAITS r1 (1)",
        "",
        "NAMESPACE  SIDECAR      AGENT  READY  POLICY    RESTARTS  MESSAGE",
        "team       svc-hello-1  hello  yes    in-force  0",
      ].join("\n"),
    );
    expect(isInSync(report)).toBe(true);
  });

  test("a rejection, with Envoy's reason", async () => {
    const nacks = [{ type: "cluster", message: "bad port", resources: ["upstream/a"] }] as const;
    const types = [{ type: "cluster", version: "c2", resources: 3, state: "rejected" }] as const;
    const envoys = [{ ...envoy, nacks, types }];
    installation.gateway("gw-1", { ...GATEWAY_STATUS, envoys });
    const report = await readProxies(installation.session);
    expect(renderProxies(report)).toContain("NACK c2 (3)");
    expect(renderProxies(report)).toContain("Envoy gw-1 rejected a cluster (upstream/a): bad port");
    expect(isInSync(report)).toBe(false);
  });

  test("a gateway of an earlier version does not report its types", async () => {
    const { types: _types, ...old } = envoy;
    installation.gateway("gw-1", { ...GATEWAY_STATUS, envoys: [old] });
    expect(renderProxies(await readProxies(installation.session))).toMatch(/gw-1 +yes +- +- +-\n/);
  });

  test.each<[string, object, string, string]>([
    ["outdated", {}, METRICS.replace("ok 1", "ok 0"), "outdated"],
    ["restart-needed", {}, METRICS.replace("waiting 0", "waiting 2"), "restart-needed"],
    [
      "why the container does not run",
      { ready: false, state: { waiting: { reason: "CrashLoopBackOff", message: "back-off" } } },
      METRICS,
      "CrashLoopBackOff: back-off",
    ],
  ])("a sidecar: %s", async (_name, container, metrics, words) => {
    installation.sidecar("svc-hello-1", container);
    installation.metricsOf("team", "svc-hello-1", 8090, metrics);
    expect(renderProxies(await readProxies(installation.session))).toContain(words);
  });

  test("pods that have ended or leave are left out", async () => {
    installation.pod("gw-1", { phase: "Succeeded" });
    const report = await readProxies(installation.session);
    expect(report.gateways).toEqual([]);
    expect(isInSync(report)).toBe(false);
  });
});
