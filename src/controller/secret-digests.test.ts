import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { KubeClient } from "../kubernetes/client.ts";
import { FakeApiServer } from "../kubernetes/testing.ts";
import { CapturedLog, FakeClock } from "../platform/testing.ts";
import { SecretDigests } from "./secret-digests.ts";
import { eventually } from "../../e2e/support/wait.ts";

const PATH = "/api/v1/namespaces/team/secrets";
const KEY = Buffer.alloc(32, 1);

let server: FakeApiServer;
let opened: SecretDigests[];

beforeEach(async () => {
  server = await FakeApiServer.start();
  opened = [];
});

afterEach(async () => {
  await Promise.all(opened.map(async (digests) => digests.stop()));
  await server.stop();
});

const put = (name: string, data: Readonly<Record<string, string>>) =>
  server.put(`${PATH}/${name}`, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name },
    data: Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
    ),
  });

async function open(key: Uint8Array = KEY): Promise<SecretDigests> {
  const digests = new SecretDigests(
    {
      client: new KubeClient(server.connect(), "test"),
      namespaces: [],
      clock: new FakeClock(),
      log: new CapturedLog().log,
    },
    key,
  );
  opened.push(digests);
  digests.start();
  await digests.synced();
  return digests;
}

const of = (digests: SecretDigests, name: string, key = "token") =>
  digests.digestOf("team", { name, key });

test("keeps no value, in no form", async () => {
  put("one", { token: "ghp_secret" });
  const digests = await open();
  digests.track(new Set(["team/one"]));
  const kept = JSON.stringify([...digests.objects.values()]);
  for (const form of ["ghp_secret", Buffer.from("ghp_secret").toString("base64")])
    expect(kept).not.toContain(form);
});

test("equal values of two Secrets, or under two keys, have different digests", async () => {
  put("one", { token: "same", other: "same" });
  put("two", { token: "same" });
  const digests = await open();
  const all = [of(digests, "one"), of(digests, "one", "other"), of(digests, "two")];
  expect(new Set(all).size).toBe(3);
  expect(of(await open(), "one")).toBe(of(digests, "one"));
  expect(of(await open(Buffer.alloc(32, 2)), "one")).not.toBe(of(digests, "one"));
});

test("a value that cannot be sent stays recognisable, and an empty one empty", async () => {
  put("one", { good: "a b\n", bad: "a\nb", empty: "" });
  const digests = await open();
  const text = (key: string) => Buffer.from(of(digests, "one", key), "base64").toString();
  expect(text("good")).toMatch(/^[0-9a-f]{64}$/);
  expect(text("bad")).toMatch(/^\n/);
  expect(text("empty")).toBe("");
});

test("what does not exist has no digest, whatever its name", async () => {
  put("one", { token: "x" });
  const digests = await open();
  expect([of(digests, "two"), of(digests, "one", "constructor")]).toEqual(["", ""]);
});

test("tells changes of those that are tracked, also of one that appears", async () => {
  put("one", { token: "x" });
  const digests = await open();
  const listener = vi.fn();
  digests.onChange(listener);
  digests.track(new Set(["team/new"]));
  put("one", { token: "y" });
  put("new", { token: "x" });
  await eventually(() => expect([...digests.objects.keys()]).toEqual(["team/new"]));
  expect(listener).toHaveBeenCalledTimes(1);
  server.remove(`${PATH}/new`);
  await eventually(() => expect(digests.objects.size).toBe(0));
  expect(listener).toHaveBeenCalledTimes(2);
});
