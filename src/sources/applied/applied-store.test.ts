import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openFolder } from "../folder/folder-source.ts";
import type { Source } from "../source.ts";
import { AppliedError } from "./applied-error.ts";
import { AppliedStore, type ObjectRef } from "./applied-store.ts";

const MOCK =
  "# mine\napiVersion: svc.io/v1\nkind: ModelProvider\nmetadata: {name: mock}\nspec: " +
  "{provider: mock} # short\n";
const SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: a.b}\nstringData: {key: v}\n";
const REF: ObjectRef = { kind: "ModelProvider", namespace: "default", name: "mock" };
const FILE = "modelprovider.default.mock.yaml";

let dir: string;
let applied: string;
let source: Source;
let store: AppliedStore;
/** State in force at the time of the wait. */
let inForce: string[][];

beforeEach(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
  applied = path.join(dir, "applied");
  source = await openFolder({ dir, log: { warn: () => undefined } });
  inForce = [];
  store = open();
});

afterEach(async () => {
  await source.close();
  rmSync(dir, { recursive: true });
});

function open(): AppliedStore {
  return new AppliedStore({
    dir,
    refresh: () => source.refresh(),
    inForce: async () => void inForce.push([...source.current().resources.modelProviders.keys()]),
    placeOf: (id) => source.placeOf(id),
  });
}

const apply = (...texts: string[]): Promise<string[]> =>
  store
    .apply(texts.map((text, i) => ({ source: `${i}.yaml`, text })))
    .then((results) => results.map(({ kind, name, change }) => `${kind} ${name} ${change}`));

async function refused(work: Promise<unknown>): Promise<AppliedError> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(AppliedError);
  return error as AppliedError;
}

describe("apply", () => {
  test("writes a file an object, for this user alone, and waits until it is in force", async () => {
    expect(await apply(`${MOCK}---\n${SECRET}`)).toEqual([
      "ModelProvider mock created",
      "Secret a.b created",
    ]);
    expect(readdirSync(applied).toSorted()).toEqual([FILE, "secret.default.a.b.yaml"]);
    expect(statSync(applied).mode & 0o777).toBe(0o700);
    for (const file of readdirSync(applied))
      expect(statSync(path.join(applied, file)).mode & 0o777).toBe(0o600);
    expect(inForce).toEqual([["default/mock"]]);
  });

  test("says what changed", async () => {
    await apply(MOCK);
    const before = statSync(path.join(applied, FILE));
    expect(await apply(MOCK)).toEqual(["ModelProvider mock unchanged"]);
    expect(statSync(path.join(applied, FILE)).ino).toBe(before.ino);
    expect(await apply(MOCK.replace("# mine", "# ours"))).toEqual([
      "ModelProvider mock configured",
    ]);
    expect(readFileSync(path.join(applied, FILE), "utf8")).toContain("# ours");
  });

  test("leaves alone what another file defines, and names it; nothing else is written either", async () => {
    writeFileSync(path.join(dir, "mine.yaml"), `\n${MOCK}`);
    const error = await refused(apply(SECRET, MOCK));
    expect(error.fault).toBe("conflict");
    expect(error.problems).toEqual([
      "ModelProvider default/mock is defined in mine.yaml:3: edit that file, or take the " +
        "object out of it and apply again",
    ]);
    expect(existsSync(applied)).toBe(false);
  });

  test("also what another file defines wrongly", async () => {
    writeFileSync(path.join(dir, "mine.yaml"), MOCK.replace("mock}", "mock, labels: 5}"));
    expect((await refused(apply(MOCK))).message).toContain("is defined in mine.yaml:2");
  });

  test("mends a file of its own that somebody broke", async () => {
    await apply(MOCK);
    writeFileSync(path.join(applied, FILE), ": [");
    expect(await apply(MOCK)).toEqual(["ModelProvider mock configured"]);
    expect(source.current().problems).toEqual([]);
  });

  test("create refuses what exists, and writes nothing", async () => {
    await apply(MOCK);
    const error = await refused(
      store.apply([{ source: "a", text: `${SECRET}---\n${MOCK}` }], { create: true }),
    );
    expect([error.fault, error.message]).toEqual([
      "exists",
      "ModelProvider default/mock exists already",
    ]);
    expect(readdirSync(applied)).toEqual([FILE]);
  });

  test("many at once come one after the other, and all are kept", async () => {
    const names = Array.from({ length: 20 }, (_, i) => `p${i}`);
    await Promise.all([...names, ...names].map((name) => apply(MOCK.replace("mock}", `${name}}`))));
    expect(
      [...source.current().resources.modelProviders.values()].map(({ name }) => name).toSorted(),
    ).toEqual(names.toSorted());
    expect(readdirSync(applied).filter((file) => file.endsWith(".tmp"))).toEqual([]);
  });

  test("one that fails does not stop the next", async () => {
    const [bad, good] = await Promise.allSettled([apply(": ["), apply(MOCK)]);
    expect([bad?.status, good?.status]).toEqual(["rejected", "fulfilled"]);
  });

  test("another gateway that shares the folder sees it, and changes it", async () => {
    await apply(MOCK);
    const other = await openFolder({ dir, log: { warn: () => undefined } });
    const second = new AppliedStore({
      dir,
      refresh: () => other.refresh(),
      inForce: async () => undefined,
      placeOf: (id) => other.placeOf(id),
    });
    expect(await second.apply([{ source: "a", text: MOCK }])).toMatchObject([
      { change: "unchanged" },
    ]);
    await second.patch(REF, { spec: { allowedModels: ["x"] } });
    expect(
      (await source.refresh()).resources.modelProviders.get("default/mock")?.spec.allowedModels,
    ).toEqual(["x"]);
    await other.close();
  });
});

describe("a folder that cannot be written", () => {
  test("a file in the place of applied/", async () => {
    writeFileSync(applied, "");
    const error = await refused(apply(MOCK));
    expect(error.fault).toBe("unwritable");
    expect(error.message).toContain("ENOTDIR");
  });

  test("a link in the place of applied/ leads nowhere", async () => {
    const elsewhere = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
    symlinkSync(elsewhere, applied);
    expect((await refused(apply(MOCK))).message).toBe(`${applied} is not a folder: move it away`);
    expect(readdirSync(elsewhere)).toEqual([]);
    rmSync(elsewhere, { recursive: true });
  });

  test("a folder that is gone", async () => {
    rmSync(dir, { recursive: true });
    const error = await refused(apply(MOCK));
    expect([error.fault, error.message]).toEqual([
      "unwritable",
      expect.stringMatching(/^the resource folder \S+ could not be .*\(ENOENT\)/),
    ]);
    mkdirSync(dir);
  });

  test("a name longer than a file's", async () => {
    const name = Array.from({ length: 4 }, () => "a".repeat(60)).join(".");
    const error = await refused(apply(SECRET.replace("a.b", name)));
    expect([error.fault, error.message]).toEqual([
      "invalid",
      expect.stringContaining("the name is too long"),
    ]);
  });

  test("one that others could read is closed to them", async () => {
    mkdirSync(applied);
    chmodSync(applied, 0o755);
    await apply(MOCK);
    expect(statSync(applied).mode & 0o777).toBe(0o700);
  });

  test("a link in the place of an object's file is replaced, not followed", async () => {
    await apply(SECRET);
    const target = path.join(dir, "target.txt");
    writeFileSync(target, "theirs");
    symlinkSync(target, path.join(applied, FILE));
    await apply(MOCK);
    expect(readFileSync(target, "utf8")).toBe("theirs");
    expect(lstatSync(path.join(applied, FILE)).isSymbolicLink()).toBe(false);
  });
});

describe("patch", () => {
  beforeEach(() => apply(MOCK));

  test("keeps comments and says what changed", async () => {
    expect(await store.patch(REF, { spec: { allowedModels: ["x"] } })).toEqual({
      ...REF,
      change: "configured",
    });
    expect(readFileSync(path.join(applied, FILE), "utf8")).toBe(
      "# mine\napiVersion: svc.io/v1\nkind: ModelProvider\nmetadata: { name: mock }\nspec: " +
        "{ provider: mock, allowedModels: [ x ] } # short\n",
    );
    expect(await store.patch(REF, { spec: { allowedModels: ["x"] } })).toEqual({
      ...REF,
      change: "unchanged",
    });
    await store.patch(REF, { spec: { allowedModels: null } });
    expect(
      source.current().resources.modelProviders.get("default/mock")?.spec.allowedModels,
    ).toBeUndefined();
  });

  test.each<[string, unknown, RegExp]>([
    [
      "is not valid",
      { spec: { provider: "opnai" } },
      /ModelProvider default\/mock, patched:\d+: ModelProvider mock: spec\.provider: .*did you mean openai/,
    ],
    ["takes the spec away", { spec: null }, /spec/],
    ["renames", { metadata: { name: "other" } }, /cannot change the kind, namespace or name/],
    ["renames to a path", { metadata: { name: "../x" } }, /DNS-1123/],
    ["moves", { metadata: { namespace: "other" } }, /cannot change the kind, namespace or name/],
    [
      "makes it another kind",
      { kind: "Agent", spec: { provider: null } },
      /cannot change the kind, namespace or name/,
    ],
    ["empties it", { apiVersion: null, kind: null, metadata: null, spec: null }, /kind/],
  ])("one that %s is refused, and nothing is written", async (_name, patch, words) => {
    const before = readFileSync(path.join(applied, FILE), "utf8");
    const error = await refused(store.patch(REF, patch));
    expect([error.fault, error.message]).toEqual(["invalid", expect.stringMatching(words)]);
    expect(readFileSync(path.join(applied, FILE), "utf8")).toBe(before);
    expect(readdirSync(applied)).toEqual([FILE]);
  });

  test("that demands a version other than the one there is refused", async () => {
    const version = source.current().resources.modelProviders.get("default/mock")?.version;
    const patch = (model: string): unknown => ({
      metadata: { resourceVersion: version },
      spec: { allowedModels: [model] },
    });
    const [first, second] = await Promise.allSettled([
      store.patch(REF, patch("a")),
      store.patch(REF, patch("b")),
    ]);
    expect(first?.status).toBe("fulfilled");
    expect(second).toMatchObject({
      status: "rejected",
      reason: {
        fault: "conflict",
        message: expect.stringContaining("has changed in the meantime") as unknown,
      },
    });
    expect(readFileSync(path.join(applied, FILE), "utf8")).not.toContain("resourceVersion");
  });

  test("of what is not there, or not its own", async () => {
    expect((await refused(store.patch({ ...REF, name: "none" }, {}))).fault).toBe("not-found");
    writeFileSync(path.join(dir, "mine.yaml"), MOCK.replace("mock}", "mine}"));
    const error = await refused(store.patch({ ...REF, name: "mine" }, {}));
    expect([error.fault, error.message]).toEqual([
      "conflict",
      "ModelProvider default/mine is defined in mine.yaml:2, and is not patched here: edit " +
        "that file",
    ]);
  });
});

describe("delete", () => {
  test("takes the object out of force", async () => {
    await apply(MOCK);
    await store.delete(REF);
    expect(readdirSync(applied)).toEqual([]);
    expect(inForce.at(-1)).toEqual([]);
    expect((await refused(store.delete(REF))).fault).toBe("not-found");
  });

  test("leaves another file's object alone", async () => {
    writeFileSync(path.join(dir, "mine.yaml"), MOCK);
    expect((await refused(store.delete(REF))).message).toBe(
      "ModelProvider default/mock is defined in mine.yaml:2, and is not deleted here: edit " +
        "that file",
    );
    expect(existsSync(path.join(dir, "mine.yaml"))).toBe(true);
  });

  test("of an object that another file came to define as well, takes away its own", async () => {
    await apply(MOCK);
    writeFileSync(path.join(dir, "a.yaml"), MOCK);
    await store.delete(REF);
    expect(source.current()).toMatchObject({ problems: [] });
    expect(source.placeOf("ModelProvider/default/mock")).toBe("a.yaml:2");
  });

  test.each<[string, ObjectRef]>([
    ["up", { ...REF, name: "../../victim" }],
    ["with a null", { ...REF, name: "a\0b" }],
    ["with dots", { ...REF, namespace: "..", name: "x" }],
    ["absolute", { ...REF, name: "/etc/passwd" }],
    ["backslashes", { ...REF, name: "..\\victim" }],
  ])("no path gets out: %s", async (_name, ref) => {
    writeFileSync(path.join(dir, "victim.yaml"), MOCK);
    expect((await refused(store.delete(ref))).fault).toBe("invalid");
    expect((await refused(store.patch(ref, {}))).fault).toBe("invalid");
    expect(existsSync(path.join(dir, "victim.yaml"))).toBe(true);
  });
});
