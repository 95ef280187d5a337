import { afterEach, beforeEach, expect, test } from "vitest";
import { KubeClient } from "../../kubernetes/client.ts";
import type { Informer } from "../../kubernetes/informer.ts";
import { NamedSecrets } from "../../kubernetes/named-secrets.ts";
import { FakeApiServer } from "../../kubernetes/testing.ts";
import { CapturedLog, FakeClock } from "../../platform/testing.ts";
import { parseObject } from "../../resources/parse.ts";
import type { LoadResult } from "../load-result.ts";
import { type KubernetesSource, openKubernetes } from "./kubernetes-source.ts";
import { ownInformers } from "./own-informers.ts";
import { eventually } from "../../../e2e/support/wait.ts";

const at = (name: string): string => `/apis/svc.io/v1/namespaces/team/modelproviders/${name}`;
const secretAt = (name: string): string => `/api/v1/namespaces/team/secrets/${name}`;

let server: FakeApiServer;
let clock: FakeClock;
let informers: readonly Informer[];
let secrets: NamedSecrets;
let source: KubernetesSource;
let loads: LoadResult[];

const declare = (name: string, secret: string, status?: object, spec: object = {}) =>
  server.put(at(name), {
    apiVersion: "svc.io/v1",
    kind: "ModelProvider",
    metadata: { name },
    spec: { provider: "openai", apiKeySecretRef: { name: secret, key: "token" }, ...spec },
    ...(status === undefined ? {} : { status }),
  });

beforeEach(async () => {
  server = await FakeApiServer.start();
  clock = new FakeClock();
  loads = [];
});

afterEach(async () => {
  await source.close();
  await secrets.stop();
  await Promise.all(informers.map(async (informer) => informer.stop()));
  await server.stop();
});

async function open(): Promise<void> {
  const base = {
    client: new KubeClient(server.connect(), "test"),
    clock,
    log: new CapturedLog().log,
  };
  informers = ownInformers(["ModelProvider"], { ...base, namespaces: ["team"] });
  secrets = new NamedSecrets(base);
  for (const informer of informers) informer.start();
  source = await openKubernetes({
    informers,
    secrets,
    secretsOf: ({ modelProviders }) =>
      new Set(
        [...modelProviders.values()].map(
          ({ namespace, spec }) => `${namespace}/${spec.apiKeySecretRef?.name}`,
        ),
      ),
    parse: (value) => parseObject(value, "gateway"),
    clock,
  });
  source.onChange((load) => loads.push(load));
  // The lists and watches are open, so that what follows is a change.
  await eventually(() => expect(server.watches).toBeGreaterThanOrEqual(1));
}

/** Resolves when an informer has an object in a version. */
async function seen(object: { metadata: { resourceVersion?: string } }): Promise<void> {
  await eventually(() => {
    const versions = informers.flatMap(({ objects }) =>
      [...objects.values()].map(({ metadata }) => metadata.resourceVersion),
    );
    expect(versions).toContain(object.metadata.resourceVersion);
  });
}

const specOf = (name = "openai") =>
  source.current().resources.modelProviders.get(`team/${name}`)?.spec;

test("has what is there when it is opened", async () => {
  declare("openai", "key");
  await open();
  expect(specOf()?.provider).toBe("openai");
  expect(source.current().generations.get("ModelProvider/team/openai")).toBe(1);
  expect(source.placeOf("ModelProvider/team/openai")).toBe(
    "ModelProvider openai in namespace team",
  );
  expect(source.placeOf("ModelProvider/team/absent")).toBeUndefined();
  expect(loads).toEqual([]);
});

test("a burst of changes is one load, and one without end is loaded all the same", async () => {
  await open();
  for (let i = 0; i < 5; i += 1) await seen(declare(`p${i}`, "key"));
  clock.advance(50);
  expect(loads).toHaveLength(1);
  expect(loads[0]?.resources.modelProviders.size).toBe(5);
  for (let i = 0; i < 20; i += 1) {
    await seen(declare("p0", `key-${i}`));
    clock.advance(40);
  }
  expect(loads.length).toBeGreaterThan(1);
});

test("a status is no change", async () => {
  declare("openai", "key");
  await open();
  await seen(declare("openai", "key", { ready: true }));
  clock.advance(1_000);
  expect(loads).toEqual([]);
  const before = source.current().resources.modelProviders.get("team/openai");
  await seen(declare("openai", "other"));
  clock.advance(50);
  expect(loads).toHaveLength(1);
  expect(source.current().resources.modelProviders.get("team/openai")).not.toBe(before);
});

test("the last good version stays in use, with the generation of the newest", async () => {
  declare("openai", "key");
  await open();
  await seen(declare("openai", "key", undefined, { unknown: true }));
  clock.advance(50);
  expect(specOf()?.provider).toBe("openai");
  expect(source.current().problems).toMatchObject([
    { reason: "InvalidSpec", kind: "ModelProvider", namespace: "team", name: "openai" },
  ]);
  expect(source.current().generations.get("ModelProvider/team/openai")).toBe(2);
  // One that is made anew has no earlier version.
  server.remove(at("openai"));
  await seen(declare("openai", "key", undefined, { unknown: true }));
  clock.advance(50);
  expect(specOf()).toBeUndefined();
  await seen(declare("openai", "key"));
  clock.advance(50);
  expect(source.current().problems).toEqual([]);
});

test("an object that is deleted is gone", async () => {
  declare("openai", "key");
  await open();
  server.remove(at("openai"));
  await eventually(() => expect(clock.pending).toEqual([50]));
  clock.advance(50);
  expect(source.current().resources.modelProviders.size).toBe(0);
});

test("Secrets are watched while they are named, and only those", async () => {
  const secret = (name: string, token: string) =>
    server.put(secretAt(name), {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name },
      data: { token },
    });
  secret("key", "QQ==");
  secret("other", "QQ==");
  declare("openai", "key");
  await open();
  await secrets.synced();
  clock.advance(50);
  const names = (): string[] => [...source.current().resources.secrets.keys()];
  expect(names()).toEqual(["team/key"]);
  await eventually(() => expect(server.watches).toBe(2));
  secret("key", "Qg==");
  await eventually(() => expect(clock.pending).toEqual([50]));
  clock.advance(50);
  await seen(declare("openai", "other"));
  clock.advance(50);
  await secrets.synced();
  await eventually(() => expect(clock.pending).toEqual([50]));
  clock.advance(50);
  expect(names()).toEqual(["team/other"]);
  const selectors = new Set(server.requests.map(({ query }) => query.get("fieldSelector")));
  expect([...selectors]).toEqual([null, "metadata.name=key", "metadata.name=other"]);
  await eventually(() => expect(server.watches).toBe(2));
});

test("a refresh is told to the listeners, and a closed source tells nothing", async () => {
  declare("openai", "key");
  await open();
  await source.refresh();
  expect(loads).toHaveLength(1);
  await source.close();
  await seen(declare("openai", "other"));
  clock.advance(1_000);
  await source.refresh();
  expect(loads).toHaveLength(1);
});
