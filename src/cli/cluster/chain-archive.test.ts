/** The archive of chains: what the script prints in a shell, and what hostile pods may send. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ARCHIVE_SCRIPT, ArchiveReader } from "./chain-archive.ts";

let dir: string;
let copy: string;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
  chmodSync(dir, 0o755);
  copy = path.join(dir, "copy");
  mkdirSync(copy);
});
afterEach(() => rmSync(dir, { recursive: true }));

function read(parts: readonly (string | Buffer)[]): void {
  const reader = new ArchiveReader(copy);
  try {
    for (const part of parts) reader.write(Buffer.from(part));
    reader.end();
  } finally {
    reader.close();
  }
}

const files = (): string[] => readdirSync(copy, { recursive: true, encoding: "utf8" }).toSorted();

function archiveOf(folder: string, prefix = ""): Buffer {
  const args = ["-c", ARCHIVE_SCRIPT, "sh", folder, prefix];
  // Root could read everything.
  const user = process.getuid?.() === 0 ? { uid: 65_534 } : {};
  return execFileSync("/bin/sh", args, { stdio: ["ignore", "pipe", "pipe"], ...user });
}

test("a shell's archive of chains, in parts of every size", () => {
  const chain = path.join(dir, "audit/gw-1");
  mkdirSync(chain, { recursive: true });
  mkdirSync(path.join(dir, "audit-keys"));
  writeFileSync(path.join(dir, "audit-keys/gw-1.pem"), "private");
  writeFileSync(path.join(chain, "000001.jsonl"), '{"a":1}\n\0\xff\n');
  writeFileSync(path.join(chain, "000002.jsonl"), "");
  writeFileSync(path.join(chain, "checkpoints.jsonl"), "c\n");
  writeFileSync(path.join(chain, "audit.pub"), "key\n");
  writeFileSync(path.join(chain, "writer.lock"), "lock");
  symlinkSync(path.join(dir, "audit-keys/gw-1.pem"), path.join(chain, "000003.jsonl"));
  const archive = archiveOf(path.join(dir, "audit"));
  expect(archive.toString("latin1").startsWith("2 gw-1/checkpoints.jsonl\nc\n")).toBe(true);
  for (const size of [1, 7, 1_000]) {
    rmSync(copy, { recursive: true });
    mkdirSync(copy);
    const count = Math.ceil(archive.length / size);
    read(Array.from({ length: count }, (_, i) => archive.subarray(i * size, (i + 1) * size)));
    expect(files()).toEqual([
      "gw-1",
      ...["000001.jsonl", "000002.jsonl", "audit.pub", "checkpoints.jsonl"].map(
        (name) => `gw-1/${name}`,
      ),
    ]);
    for (const name of ["000001.jsonl", "checkpoints.jsonl"])
      expect(readFileSync(path.join(copy, "gw-1", name))).toEqual(
        readFileSync(path.join(chain, name)),
      );
  }
});

test("only chains whose names begin as it is wanted are sent", () => {
  for (const name of ["sidecar-svc-a-1", "sidecar-svc-a-b-1", "sidecar-svc-b-1", "*"]) {
    mkdirSync(path.join(dir, "audit", name), { recursive: true });
    writeFileSync(path.join(dir, "audit", name, "audit.pub"), "key\n");
  }
  const sent = (prefix: string): string[] =>
    archiveOf(path.join(dir, "audit"), prefix)
      .toString()
      .match(/\S+(?=\/)/g) ?? [];
  expect(sent("sidecar-svc-a-")).toEqual(["sidecar-svc-a-1", "sidecar-svc-a-b-1"]);
  expect(sent("sidecar-svc-c-")).toEqual([]);
  expect(sent("*")).toEqual(["*"]);
  expect(sent("$(id)")).toEqual([]);
});

describe("a folder of chains that", () => {
  test("does not exist is an empty archive", () => {
    expect(archiveOf(path.join(dir, "audit")).toString()).toBe("");
  });

  test.each([
    ["is no folder", () => writeFileSync(path.join(dir, "audit"), "")],
    ["is in a folder that does not exist", () => rmSync(dir, { recursive: true })],
  ])("%s is an error", (_name, prepare) => {
    prepare();
    expect(() => archiveOf(path.join(dir, "audit"))).toThrow("cd");
    mkdirSync(dir, { recursive: true });
  });

  test("holds a chain of another user is an error, not an archive without it", () => {
    const chain = path.join(dir, "audit/gw-1");
    mkdirSync(chain, { recursive: true });
    chmodSync(chain, 0);
    expect(() => archiveOf(path.join(dir, "audit"))).toThrow("gw-1/ cannot be read");
  });
});

describe("a hostile archive is refused", () => {
  test.each([
    ["another file", "1 gw/evil.sh\nx"],
    ["a path upwards", "1 ../audit.pub\nx"],
    ["a writer that is a path", "1 ../../etc/audit.pub\nx"],
    ["an absolute path", "1 /etc/audit.pub\nx"],
    ["a name with a null", "1 g\0/audit.pub\nx"],
    ["a segment with another name", "1 gw/0000001.jsonl\nx"],
    ["a file twice", "1 gw/audit.pub\nx1 gw/audit.pub\ny"],
    ["no size", " gw/audit.pub\nx"],
    ["a negative size", "-1 gw/audit.pub\nx"],
    ["a size beyond all bounds", "99999999999999 gw/audit.pub\nx"],
    ["a header without end", "1".repeat(10_000)],
    ["an end within a file", "5 gw/audit.pub\nx"],
    ["an end within a header", "5 gw"],
  ])("%s", (_name, text) => {
    expect(() => read([text])).toThrow();
    expect(readdirSync(dir)).toEqual(["copy"]);
  });
});
