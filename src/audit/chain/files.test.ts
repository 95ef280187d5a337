/** The files around a chain: its lock, its key, its folder, and what a start finds in them. */
import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Checkpoint, parseCheckpoint, signCheckpoint } from "./checkpoint.ts";
import { AuditError } from "../errors.ts";
import { findChains, listChain } from "./layout.ts";
import { livingWriter, takeLock } from "../writer/lock.ts";
import { recoverChain } from "../writer/recover.ts";
import { loadPublicKey, loadSigningKey, parsePublicKey } from "./signing-key.ts";
import { append, AuditWorld, call } from "../testing.ts";

let world: AuditWorld;
let dir: string;
beforeEach(() => {
  world = new AuditWorld();
  dir = path.join(world.dir, "gw");
  mkdirSync(dir, { recursive: true });
});
afterEach(() => world.remove());

const lock = (): string => path.join(dir, "writer.lock");

describe("a lock", () => {
  test("names its process, and leaves no other file", () => {
    const release = takeLock(dir);
    expect(readdirSync(dir)).toEqual(["writer.lock"]);
    expect(statSync(lock()).mode & 0o777).toBe(0o600);
    expect(livingWriter(dir)).toBe(process.pid);
    release();
    expect(readdirSync(dir)).toEqual([]);
  });

  test("of another living process is respected, and taken over when it has ended", async () => {
    const other = spawn(process.execPath, ["-e", "process.stdin.resume()"]);
    takeLock(dir);
    const mine = readFileSync(lock(), "latin1");
    const start = readFileSync(`/proc/${other.pid}/stat`, "latin1").replace(/^.*\) /s, "");
    const words = mine.trim().split(" ");
    words.splice(2, 2, String(other.pid), start.split(" ")[19] as string);
    writeFileSync(lock(), `${words.join(" ")}\n`);
    expect(livingWriter(dir)).toBe(other.pid);
    expect(() => takeLock(dir)).toThrow(`is being written by process ${other.pid}`);
    expect(readFileSync(lock(), "latin1").trim()).toBe(words.join(" "));
    const ended = once(other, "exit");
    other.kill("SIGKILL");
    await ended;
    expect(livingWriter(dir)).toBeUndefined();
    takeLock(dir)();
    expect(readdirSync(dir)).toEqual([]);
  });

  test("that another process has taken over is not released", () => {
    const release = takeLock(dir);
    writeFileSync(lock(), "another\n");
    release();
    expect(readFileSync(lock(), "latin1")).toBe("another\n");
  });

  test.each(["", "a b 0 1", "a b -1 1", "a b 1.5 1", "a b x 1"])("%j names no process", (text) => {
    writeFileSync(lock(), text);
    expect(livingWriter(dir)).toBeUndefined();
  });

  test("that cannot be created is told", () => {
    rmSync(dir, { recursive: true });
    expect(() => takeLock(dir)).toThrow(/cannot be locked \(ENOENT\)/);
  });

  test("whose place is a folder is told, and leaves nothing", () => {
    mkdirSync(lock());
    writeFileSync(path.join(lock(), "x"), "");
    mkdirSync(`${lock()}.${process.pid}.stale`);
    writeFileSync(path.join(`${lock()}.${process.pid}.stale`, "x"), "");
    expect(() => takeLock(dir)).toThrow(AuditError);
    expect(existsSync(`${lock()}.${process.pid}`)).toBe(false);
  });
});

describe("a key", () => {
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const pem = (key: typeof rsa.privateKey, type: "pkcs8" | "spki"): string =>
    key.export({ type, format: "pem" } as { type: "pkcs8"; format: "pem" }).toString();

  test("is created once, for this user alone, with its folder", () => {
    const file = path.join(world.root, "keys", "audit.key");
    const first = loadSigningKey(file);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(path.dirname(file)).mode & 0o777).toBe(0o700);
    expect(loadSigningKey(file).publicKey).toEqual(first.publicKey);
    expect(first.publicKey.fingerprint).toMatch(/^[0-9a-f]{64}$/);
    expect(first.privateKey.asymmetricKeyType).toBe("ed25519");
  });

  test.each<[name: string, text: string, message: string]>([
    ["what is no key", "x", "is not a private key in PEM form"],
    ["a key of another kind", pem(rsa.privateKey, "pkcs8"), "is not an Ed25519 key"],
  ])("%s does not sign", (_name, text, message) => {
    writeFileSync(world.keyFile, text, { mode: 0o600 });
    expect(() => loadSigningKey(world.keyFile)).toThrow(message);
  });

  test("that others may read does not sign", () => {
    loadSigningKey(world.keyFile);
    chmodSync(world.keyFile, 0o644);
    expect(() => loadSigningKey(world.keyFile)).toThrow(AuditError);
  });

  test("that is a folder, or in no folder, is told", () => {
    mkdirSync(world.keyFile);
    expect(() => loadSigningKey(world.keyFile)).toThrow(AuditError);
    writeFileSync(path.join(world.root, "file"), "");
    expect(() => loadSigningKey(path.join(world.root, "file", "key"))).toThrow(
      /cannot be (?:read|created) \(ENOTDIR\)/,
    );
  });

  test("that is public is read for what it is", () => {
    const { publicKey } = loadSigningKey(world.keyFile);
    const file = path.join(world.root, "audit.pub");
    writeFileSync(file, publicKey.pem);
    expect(loadPublicKey(file)).toEqual(publicKey);
    expect(() => parsePublicKey("x", "The member")).toThrow("The member is not a public key");
    expect(() => parsePublicKey(pem(rsa.publicKey, "spki"), "The member")).toThrow(
      "The member is not an Ed25519 public key",
    );
    rmSync(file);
    expect(() => loadPublicKey(file)).toThrow("cannot be read (ENOENT)");
  });
});

describe("a folder", () => {
  test("lists its segments by number, and what only looks like records", () => {
    const names = ["000010.jsonl", "000002.jsonl", "1000000.jsonl", "checkpoints.jsonl"];
    const strangers = ["000000.jsonl", "0000003.jsonl", "3.jsonl", "000004.JSONL", "x.jsonl.bak"];
    for (const name of [...names, ...strangers, "audit.pub"])
      writeFileSync(path.join(dir, name), "");
    expect(listChain(dir).segments).toEqual([2, 10, 1_000_000]);
    expect(new Set(listChain(dir).strangers)).toEqual(new Set(strangers));
  });

  test("of chains has each of them, by name", () => {
    for (const [name, file] of [
      ["b", "000001.jsonl"],
      ["a", "checkpoints.jsonl"],
      ["c", "audit.pub"],
      ["none", "other.txt"],
    ] as const) {
      mkdirSync(path.join(world.dir, name));
      writeFileSync(path.join(world.dir, name, file), "");
    }
    writeFileSync(path.join(world.dir, "file"), "");
    expect(findChains(world.dir)).toEqual(
      ["a", "b", "c"].map((name) => ({ name, dir: path.join(world.dir, name), named: false })),
    );
  });

  test.each(["000001.jsonl", "checkpoints.jsonl"])("of one chain is that chain: %s", (file) => {
    writeFileSync(path.join(dir, file), "");
    expect(findChains(dir)).toEqual([{ name: "gw", dir, named: true }]);
  });

  test("that cannot be read is told", () => {
    expect(() => findChains(path.join(world.root, "none"))).toThrow("cannot be read (ENOENT)");
  });
});

describe("a start", () => {
  const key = (): ReturnType<typeof loadSigningKey>["publicKey"] =>
    loadSigningKey(world.keyFile).publicKey;

  test("finds the end of a segment of many megabytes, and of one whose end is torn", async () => {
    const writer = await world.open({ segmentBytes: 64 << 20 });
    const text = "x".repeat(50_000);
    for (let i = 0; i < 180; i += 1)
      await append(writer, { type: "LLM_CALL", fields: { i, text } });
    await writer.close();
    const file = world.path("000001.jsonl");
    expect(statSync(file).size).toBeGreaterThan(8 << 20);
    const whole = recoverChain(dir, "gw", key());
    expect(whole).toMatchObject({ closed: true, unended: false, torn: undefined });
    expect(whole.last.seq).toBe(world.records().at(-1)?.seq);
    expect(whole.segment).toMatchObject({ number: 1, tied: true, size: statSync(file).size });
    appendFileSync(file, '{"half');
    const torn = recoverChain(dir, "gw", key());
    expect(torn.last).toEqual(whole.last);
    expect(torn).toMatchObject({ closed: false, torn: { bytes: 6 } });
  });

  test("does not go on without a segment that it needs", async () => {
    await world.write(40, { segmentBytes: 6_000 });
    rmSync(world.path("000002.jsonl"));
    await expect(world.open()).rejects.toThrow("000002.jsonl is missing");
  });

  test("does not go on after a segment without records", async () => {
    await world.write(40, { segmentBytes: 6_000 });
    writeFileSync(world.path("000002.jsonl"), "");
    await expect(world.open()).rejects.toThrow("000002.jsonl contains no record");
  });

  test.each<[name: string, edit: (line: string) => string]>([
    ["of another chain", (line) => line.replace('"chain":"gw"', '"chain":"other"')],
    ["that is none", () => "{}"],
  ])("does not go on after a checkpoint %s", async (_name, edit) => {
    await world.write(1);
    const file = world.path("checkpoints.jsonl");
    const lines = readFileSync(file, "utf8").trimEnd().split("\n");
    lines.push(edit(lines.pop() as string));
    writeFileSync(file, `${lines.join("\n")}\n`);
    await expect(world.open()).rejects.toThrow("does not end with a checkpoint of the chain gw");
  });

  test("does not go on after a checkpoint that was edited", async () => {
    await world.write(1);
    const file = world.path("checkpoints.jsonl");
    writeFileSync(file, readFileSync(file, "utf8").replace('"final":true', '"final":false'));
    await expect(world.open()).rejects.toThrow("was signed with another key");
  });
});

describe("a checkpoint", () => {
  const good: Checkpoint = {
    v: 1,
    chain: "gw",
    n: 1,
    prev: "0",
    seq: 1,
    hash: "0",
    time: "2026-01-31T12:00:00.000Z",
    segments: 1,
    final: false,
    key: "k",
  };
  const line = (more: object): string =>
    signCheckpoint({ ...good, ...more }, loadSigningKey(world.keyFile).privateKey);

  test("is read as it was written", () => {
    expect(parseCheckpoint(line({}))).toMatchObject(good);
  });

  test.each<[name: string, more: object]>([
    ["another version", { v: 2 }],
    ["a number that is not whole", { n: 1.5 }],
    ["no record", { seq: 0 }],
    ["no segment", { segments: 0 }],
    ["a number as text", { n: "1" }],
    ["a chain that is no text", { chain: 1 }],
    ["an end that is not yes or no", { final: 1 }],
    ["another member", { more: 1 }],
    ["a member less", { time: undefined }],
  ])("with %s is none", (_name, more) => {
    expect(parseCheckpoint(line(more))).toBeUndefined();
  });

  test.each<[name: string, edit: (text: string) => string]>([
    ["spaces", (text) => text.replace(",", ", ")],
    ["another order of its members", (text) => `{"v":1,${text.slice(1).replace(',"v":1', "")}`],
    ["a part of it", (text) => text.slice(0, -1)],
  ])("written with %s is none", (_name, edit) => {
    expect(edit(line({}))).not.toBe(line({}));
    expect(parseCheckpoint(edit(line({})))).toBeUndefined();
  });
});

test("a record that nobody waits for is in the chain as well", async () => {
  const writer = await world.open();
  writer.append(call(1));
  await writer.close();
  expect(world.records().map(({ fields }) => fields["i"])).toContain(1);
});
