/** Which places are read, for which pods and claims there are. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CORE } from "../../kubernetes/objects.ts";
import { sourcesOf } from "./audit-sources.ts";
import { FakeInstallation, SYSTEM } from "./testing.ts";

let installation: FakeInstallation;

beforeEach(async () => {
  installation = await FakeInstallation.start();
});
afterEach(() => installation.close());

/** `<place> <- <pod>`, or `<- reader`. */
async function places(workload?: string): Promise<readonly string[]> {
  const found = await sourcesOf(installation.session, workload);
  return found.map((source) =>
    source.via === "nothing"
      ? `${source.place}: ${source.problem}`
      : `${source.place} <- ${source.via === "container" ? source.pod : "reader"}`,
  );
}

const claimed = (name: string, claimName: string): object => ({
  volumes: [{ name, persistentVolumeClaim: { claimName } }],
});

function claim(namespace: string, name = "chains", phase = "Bound"): void {
  installation.put(CORE.persistentVolumeClaim, {
    metadata: { namespace, name },
    status: { phase },
  });
}

const GATEWAY_AND_POD = ["pod svc-system/gw-1 <- gw-1", "pod team/svc-hello-1 <- svc-hello-1"];

describe("without claims", () => {
  test("each pod that runs has its own", async () => {
    expect(await places()).toEqual(GATEWAY_AND_POD);
  });

  test("for an agent, only its pods, and the gateways", async () => {
    installation.sidecar("svc-other-1", {}, { labels: { "svc.io/agent": "other" } });
    expect(await places("team/hello")).toEqual(GATEWAY_AND_POD);
    expect(await places("elsewhere/hello")).toEqual(GATEWAY_AND_POD.slice(0, 1));
    expect(await places("ext:laptop")).toEqual(GATEWAY_AND_POD.slice(0, 1));
  });

  test("a pod that does not run yet has none", async () => {
    installation.sidecar("svc-hello-1", {}, { phase: "Pending" });
    expect(await places()).toEqual(GATEWAY_AND_POD.slice(0, 1));
  });
});

describe("claims of agents", () => {
  beforeEach(() => {
    installation.configure({ audit: { claim: "chains" } });
    claim("team");
  });

  test("are read once, through a pod that mounts it, beside pods without it", async () => {
    for (const name of ["svc-hello-2", "svc-hello-3"])
      installation.sidecar(name, {}, { spec: claimed("svc-audit", "chains") });
    expect(await places()).toEqual([...GATEWAY_AND_POD, "claim team/chains <- svc-hello-2"]);
  });

  test("a ready pod is preferred", async () => {
    const spec = claimed("svc-audit", "chains");
    installation.sidecar("svc-hello-2", {}, { spec });
    installation.sidecar("svc-hello-3", {}, { spec, ready: true });
    expect(await places()).toContain("claim team/chains <- svc-hello-3");
  });

  test("the pod may be another agent's, and its chains are not wanted", async () => {
    const labels = { "svc.io/agent": "other" };
    installation.sidecar("svc-other-1", {}, { spec: claimed("svc-audit", "chains"), labels });
    expect(await places("team/hello")).toEqual([
      ...GATEWAY_AND_POD,
      "claim team/chains <- svc-other-1",
    ]);
    const [, , { prefix } = { prefix: "" }] = await sourcesOf(installation.session, "team/hello");
    expect(prefix).toBe("sidecar-svc-hello-");
  });

  test("another volume of the agent is not its chains'", async () => {
    installation.sidecar("svc-hello-2", {}, { spec: claimed("data", "chains") });
    expect(await places()).toContain("pod team/svc-hello-2 <- svc-hello-2");
  });

  test("that no running pod mounts are read through a reader, in every namespace", async () => {
    claim("gone");
    claim("unused", "chains", "Pending");
    claim("team", "data");
    expect(await places()).toEqual([
      ...GATEWAY_AND_POD,
      "claim team/chains <- reader",
      "claim gone/chains <- reader",
    ]);
    expect(await places("team/hello")).toEqual([...GATEWAY_AND_POD, "claim team/chains <- reader"]);
    expect(await places("ext:laptop")).toEqual(GATEWAY_AND_POD.slice(0, 1));
  });

  test("in the watched namespaces only", async () => {
    claim("gone");
    installation.configure({ audit: { claim: "chains" }, namespaces: ["gone", "none"] });
    expect(await places()).toEqual([...GATEWAY_AND_POD, "claim gone/chains <- reader"]);
  });

  test("the reader is the sidecars' user, with their image", async () => {
    installation.configure({
      audit: { claim: "chains" },
      images: {
        proxy: "example.com/proxy:1",
        svc: "s",
        pullPolicy: "Never",
        pullSecrets: ["pull"],
      },
      sidecar: { uid: 70_000 },
    });
    expect((await sourcesOf(installation.session, "team/hello")).at(-1)).toMatchObject({
      reader: {
        namespace: "team",
        claim: "chains",
        image: "example.com/proxy:1",
        pullPolicy: "Never",
        pullSecrets: ["pull"],
        user: 70_000,
      },
    });
  });

  test("are not among the chains when none is configured", async () => {
    installation.configure({});
    expect(await places()).toEqual(GATEWAY_AND_POD);
  });

  test.each(["/api/v1/persistentvolumeclaims", `/api/v1/namespaces/${SYSTEM}/configmaps`])(
    "without the right to list %s, the chains of pods are still read",
    async (at) => {
      const message = "is forbidden: you may not";
      installation.api.answer(at, { kind: "Status", status: "Failure", message }, 403);
      expect(await places()).toEqual([...GATEWAY_AND_POD, `the claims of agents: ${message}`]);
    },
  );

  test("a configuration of another version is told", async () => {
    installation.configure({ audit: { claim: "chains", bucket: "b" } });
    expect((await places()).at(-1)).toContain("is of another version: use the svc of the installa");
  });
});

describe("the claim of the gateway", () => {
  const spec = claimed("audit", "svc-audit");

  test("is read once, through one of its pods, also where the agents' has its name", async () => {
    installation.configure({ audit: { claim: "svc-audit" } });
    claim(SYSTEM, "svc-audit");
    installation.pod("gw-1", {}, spec);
    installation.pod("gw-2", {}, spec);
    expect(await places("ext:laptop")).toEqual([`claim ${SYSTEM}/svc-audit <- gw-1`]);
    expect((await places()).filter((place) => place.startsWith("claim"))).toHaveLength(1);
  });

  test("is read through a reader when none runs", async () => {
    installation.pod("gw-1", { phase: "Pending" });
    expect(await places("ext:laptop")).toEqual([]);
    const containers = [{ name: "gateway", image: "example.com/proxy:1" }];
    const securityContext = { runAsUser: 65_532, fsGroup: 65_532 };
    installation.deployment("gateway", 0, {
      template: { spec: { ...spec, containers, securityContext } },
    });
    expect(await sourcesOf(installation.session, "ext:laptop")).toMatchObject([
      {
        place: `claim ${SYSTEM}/svc-audit`,
        reader: { image: "example.com/proxy:1", user: 65_532, groups: [65_532] },
      },
    ]);
  });
});
