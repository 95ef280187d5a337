import { afterEach, beforeEach, expect, test } from "vitest";
import { KubeClient } from "../kubernetes/client.ts";
import { FakeApiServer } from "../kubernetes/testing.ts";
import { workloadKeysOf } from "../sources/kubernetes/workload-keys.ts";
import { makeInstallation } from "./installation.ts";

const KEY = "/api/v1/namespaces/svc-system/secrets/svc-workload-key";

let server: FakeApiServer;

beforeEach(async () => {
  server = await FakeApiServer.start();
});

afterEach(() => server.stop());

const make = () =>
  makeInstallation({
    client: new KubeClient(server.connect(), "svc-controller"),
    namespace: "svc-system",
    workloadKeySecret: "svc-workload-key",
  });

test("makes a key that is never changed, and the ConfigMap of prices", async () => {
  await make();
  const made = server.get(KEY);
  expect(made === undefined ? undefined : workloadKeysOf(made)?.[0]).toHaveLength(32);
  expect(server.get("/api/v1/namespaces/svc-system/configmaps/svc-model-prices")).toBeDefined();
  const writes = server.writes.length;
  await make();
  expect(server.writes).toHaveLength(writes);
  expect(server.get(KEY)).toEqual(made);
});

test("of two replicas one makes them", async () => {
  await Promise.all([make(), make()]);
  const made = server.get(KEY);
  await make();
  expect(server.get(KEY)).toEqual(made);
});
