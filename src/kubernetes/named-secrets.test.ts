import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CapturedLog, FakeClock } from "../platform/testing.ts";
import { KubeClient } from "./client.ts";
import { NamedSecrets } from "./named-secrets.ts";
import { FakeApiServer } from "./testing.ts";
import { eventually } from "../../e2e/support/wait.ts";

let server: FakeApiServer;
let secrets: NamedSecrets;

beforeEach(async () => {
  server = await FakeApiServer.start();
  const client = new KubeClient(server.connect(), "test");
  secrets = new NamedSecrets({ client, clock: new FakeClock(), log: new CapturedLog().log });
});

afterEach(async () => {
  await secrets.stop();
  await server.stop();
});

const put = (name: string, token = "QQ==") =>
  server.put(`/api/v1/namespaces/team/secrets/${name}`, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name },
    data: { token },
  });

test("knows those that are named, and asks for no others", async () => {
  put("one");
  put("two");
  secrets.track(new Set(["team/one", "team/absent"]));
  await secrets.synced();
  expect([...secrets.objects.keys()]).toEqual(["team/one"]);
  for (const { path, query } of server.requests) {
    expect(path).toBe("/api/v1/namespaces/team/secrets");
    expect(query.get("fieldSelector")).toMatch(/^metadata\.name=(?:one|absent)$/);
  }
});

test("tells when one is added, changed or deleted", async () => {
  const listener = vi.fn();
  secrets.onChange(listener);
  secrets.track(new Set(["team/one"]));
  await secrets.synced();
  put("one");
  await eventually(() => expect(listener).toHaveBeenCalledTimes(1));
  put("one", "Qg==");
  await eventually(() => expect(listener).toHaveBeenCalledTimes(2));
  expect(secrets.objects.get("team/one")?.["data"]).toEqual({ token: "Qg==" });
  server.remove("/api/v1/namespaces/team/secrets/one");
  await eventually(() => expect(listener).toHaveBeenCalledTimes(3));
  expect(secrets.objects.size).toBe(0);
});

test("forgets at once what is named no longer, and ends its watch", async () => {
  put("one");
  secrets.track(new Set(["team/one"]));
  await secrets.synced();
  await eventually(() => expect(server.watches).toBe(1));
  secrets.track(new Set());
  expect(secrets.objects.size).toBe(0);
  await eventually(() => expect(server.watches).toBe(0));
});

test("one namespace cannot use up the connections of all", async () => {
  const many = Array.from({ length: 300 }, (_, i) => `team/s${String(i).padStart(3, "0")}`);
  secrets.track(new Set([...many, "other/one"]));
  await secrets.synced();
  const asked = new Set(
    server.requests.map(({ path, query }) => path + query.get("fieldSelector")),
  );
  expect([...asked].filter((one) => one.includes("/team/"))).toHaveLength(256);
  expect([...asked].filter((one) => one.includes("/other/"))).toHaveLength(1);
});
