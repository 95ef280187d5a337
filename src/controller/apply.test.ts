import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { KubeClient } from "../kubernetes/client.ts";
import { CORE, type KubeObject } from "../kubernetes/objects.ts";
import { FakeApiServer } from "../kubernetes/testing.ts";
import { Applier, contains, NameTakenError } from "./apply.ts";
import { withEdits } from "./edited.ts";

const PATH = "/api/v1/namespaces/team/configmaps/svc-writer-providers";
const owner = { apiVersion: "svc.io/v1", kind: "Agent", name: "writer", uid: "uid-1" };

let server: FakeApiServer;
let applier: Applier;

beforeEach(async () => {
  server = await FakeApiServer.start();
  applier = new Applier(new KubeClient(server.connect(), "svc-controller"));
});

afterEach(() => server.stop());

const planned = (value: string) => ({
  kind: CORE.configMap,
  object: {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: "svc-writer-providers",
      namespace: "team",
      labels: { "svc.io/agent": "writer" },
      ownerReferences: [owner],
    },
    data: { value },
  },
});

const found = (): KubeObject => {
  const object = server.get(PATH);
  if (object === undefined) throw new Error("it does not exist");
  return withEdits(object);
};

test("applies what differs, and nothing else", async () => {
  expect(await applier.apply(planned("1"), undefined)).toBe(true);
  expect(await applier.apply(planned("1"), found())).toBe(false);
  expect(await applier.apply(planned("2"), found())).toBe(true);
  expect(found()["data"]).toEqual({ value: "2" });
  server.put(PATH, { ...found(), data: { value: "theirs" } });
  expect(await applier.apply(planned("2"), found())).toBe(true);
  expect(found()["data"]).toEqual({ value: "2" });
});

test("a field that the server writes in another form is applied once by each process", async () => {
  await applier.apply(planned("1000m"), undefined);
  const { metadata } = found();
  const stored = { ...found(), data: { value: "1" }, metadata };
  // The server stores its own form, whatever is applied.
  server.answer = ({ method }) => (method === "PATCH" ? { status: 200, body: stored } : undefined);
  const seen = withEdits(stored);
  expect(await applier.apply(planned("1000m"), seen)).toBe(true);
  expect(await applier.apply(planned("1000m"), seen)).toBe(false);
});

test("what others have added is removed by a replacement", async () => {
  await applier.apply(planned("1"), undefined);
  const managedFields = [
    { manager: "svc-controller", fieldsV1: { "f:data": { "f:value": {} } } },
    { manager: "kubectl-edit", fieldsV1: { "f:data": { "f:extra": {} } } },
  ];
  const { metadata } = found();
  const edited = { ...found(), data: { value: "1", extra: "2" } };
  server.put(PATH, { ...edited, metadata: { ...metadata, managedFields } });
  expect(await applier.apply(planned("1"), found())).toBe(true);
  expect(server.requests.at(-1)?.method).toBe("PUT");
  expect(found()["data"]).toEqual({ value: "1" });
});

test("an object of somebody else is never overwritten; one that lost a label is", async () => {
  const theirs = { apiVersion: "v1", kind: "ConfigMap", data: { value: "theirs" } };
  server.put(PATH, { ...theirs, metadata: { name: "svc-writer-providers" } });
  await expect(applier.apply(planned("1"), undefined)).rejects.toThrow(NameTakenError);
  expect(server.writes).toEqual([]);
  server.put(PATH, {
    ...theirs,
    metadata: { name: "svc-writer-providers", ownerReferences: [owner] },
  });
  expect(await applier.apply(planned("1"), undefined)).toBe(true);
});

describe("an object is edited by others", () => {
  const edited = (managed: object): boolean => {
    const managedFields = [{ manager: "somebody", ...managed }];
    const metadata = { name: "svc-writer", managedFields };
    const object = withEdits({ apiVersion: "apps/v1", kind: "Deployment", metadata });
    expect(object.metadata.managedFields).toBeUndefined();
    const before = JSON.stringify(object);
    expect(before).not.toContain("somebody");
    return isEditedOf(object);
  };
  const isEditedOf = (object: KubeObject): boolean =>
    Object.getOwnPropertySymbols(object).length > 0;
  const template = (inner: object) => ({ fieldsV1: { "f:spec": { "f:template": inner } } });
  const restart = { ".": {}, "f:kubectl.kubernetes.io/restartedAt": {} };

  test.each([
    [true, { fieldsV1: { "f:data": { "f:x": {} } } }],
    [true, { fieldsV1: { "f:spec": { "f:replicas": {} } } }],
    [true, template({ "f:spec": { "f:hostNetwork": {} } })],
    [true, template({ "f:metadata": { "f:annotations": { ...restart, "f:other": {} } } })],
    [true, template({ "f:metadata": { "f:annotations": restart }, "f:spec": {} })],
    [false, template({ "f:metadata": { "f:annotations": restart } })],
    [false, { fieldsV1: { "f:metadata": { "f:labels": {} } } }],
    [false, { subresource: "status", fieldsV1: { "f:spec": {}, "f:status": {} } }],
    [false, { manager: "svc-controller", fieldsV1: { "f:spec": { "f:replicas": {} } } }],
    [false, {}],
  ])("%s: %j", (is, managed) => {
    expect(edited(managed)).toBe(is);
  });
});

describe("contains", () => {
  test.each([
    [{ a: 1, b: 2 }, { a: 1 }],
    [{ a: [1, { b: 1, c: 2 }] }, { a: [1, { b: 1 }] }],
    [{}, { a: {} }],
    [{}, { a: [] }],
    [{}, { a: undefined }],
    [{}, { a: "" }],
    [{ a: false }, { a: false }],
  ])("%j has %j", (object, wanted) => {
    expect(contains(object, wanted)).toBe(true);
  });

  test.each([
    [{ a: 2 }, { a: 1 }],
    [{}, { a: 0 }],
    [{}, { a: false }],
    [{ a: [1, 2] }, { a: [1] }],
    [{ a: [2, 1] }, { a: [1, 2] }],
    [{ a: { b: 1 } }, { a: {} }],
    [{ a: [1] }, { a: [] }],
    [{ a: "1" }, { a: 1 }],
    [{ a: { length: 0 } }, { a: [1] }],
    [undefined, { a: 1 }],
  ])("%j lacks %j", (object, wanted) => {
    expect(contains(object, wanted)).toBe(false);
  });
});
