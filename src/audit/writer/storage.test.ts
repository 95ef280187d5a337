import { beforeEach, describe, expect, test } from "vitest";
import type { AuditFile, AuditFiles } from "../chain/files.ts";
import { Storage } from "./storage.ts";

/** Files in memory that note what is done with them; each write takes at most `most` bytes. */
class MemoryFiles implements AuditFiles {
  readonly contents = new Map<string, string>();
  readonly done: string[] = [];
  readonly failing = new Set<string>();
  most = Number.POSITIVE_INFINITY;

  open(file: string, make: boolean, durable: boolean): Promise<AuditFile> {
    const name = file.replace("/chain/", "");
    this.done.push(`open ${name}${make ? " new" : ""}${durable ? " durable" : ""}`);
    if (!this.contents.has(name)) this.contents.set(name, "");
    const text = (): string => this.contents.get(name) ?? "";
    const doing = (what: string): Promise<void> => {
      this.done.push(`${what} ${name}`);
      return this.failing.has(what) ? Promise.reject(new Error(what)) : Promise.resolve();
    };
    return Promise.resolve({
      append: (bytes, offset) => {
        const part = bytes.subarray(offset, offset + this.most);
        this.contents.set(name, text() + part.toString());
        return Promise.resolve(part.length);
      },
      sync: () => doing("sync"),
      truncate: (size) => {
        this.contents.set(name, text().slice(0, size));
        return doing("truncate");
      },
      size: () => Promise.resolve(text().length),
      close: () => doing("close"),
    });
  }

  syncDir(dir: string): Promise<void> {
    this.done.push(`syncDir ${dir}`);
    return Promise.resolve();
  }

  volume(): Promise<{ free: number; total: number }> {
    return Promise.resolve({ free: 1, total: 1 });
  }

  used(): Promise<number> {
    return Promise.resolve(0);
  }
}

const FIRST = "000001.jsonl";
const SECOND = "000002.jsonl";
const CHECKPOINTS = "checkpoints.jsonl";

let files: MemoryFiles;

beforeEach(() => {
  files = new MemoryFiles();
});

const storage = (sync = true, state = { segment: 1, size: 5, checkpointsSize: 3 }): Storage => {
  files.contents.set(FIRST, "12345").set(CHECKPOINTS, "abc");
  return new Storage("/chain", files, sync, state);
};

describe("repair", () => {
  test("cuts what a failed write left behind, and makes the rest durable", async () => {
    const repaired = storage();
    files.contents.set(FIRST, "12345torn").set(CHECKPOINTS, "abctorn");
    await repaired.repair();
    expect([files.contents.get(FIRST), files.contents.get(CHECKPOINTS)]).toEqual(["12345", "abc"]);
    expect(files.done).toEqual([
      `open ${FIRST} durable`,
      `truncate ${FIRST}`,
      `sync ${FIRST}`,
      `open ${CHECKPOINTS} durable`,
      `truncate ${CHECKPOINTS}`,
      `sync ${CHECKPOINTS}`,
      "syncDir /chain",
    ]);
  });

  test("cuts nothing that is whole, and closes what was open", async () => {
    const repaired = storage(false);
    await repaired.repair();
    expect(files.done).toContain(`open ${FIRST}`);
    expect(files.done.some((each) => each.startsWith("truncate"))).toBe(false);
    files.done.length = 0;
    await repaired.repair();
    expect(files.done.slice(0, 2)).toEqual([`close ${FIRST}`, `close ${CHECKPOINTS}`]);
  });

  test("opens no segment if there is none yet", async () => {
    await storage(true, { segment: 0, size: 0, checkpointsSize: 3 }).repair();
    expect(files.done[0]).toBe(`open ${CHECKPOINTS} durable`);
  });

  test("refuses a file that someone else has cut, and closes it", async () => {
    const repaired = storage();
    files.contents.set(FIRST, "1234");
    await expect(repaired.repair()).rejects.toThrow(
      `/chain/${FIRST} was cut to 4 bytes by someone else; 5 were written.`,
    );
    expect(files.done).toEqual([`open ${FIRST} durable`, `close ${FIRST}`]);
  });

  test("reports the failure of a sync, even if closing fails too", async () => {
    files.failing.add("sync").add("close");
    await expect(storage().repair()).rejects.toThrow("sync");
  });
});

describe("writing", () => {
  test("continues until all bytes are taken", async () => {
    const written = storage();
    await written.repair();
    files.most = 3;
    await written.append(Buffer.from("6789012345"));
    await written.appendCheckpoint("defgh");
    expect(files.contents.get(FIRST)).toBe("123456789012345");
    expect(files.contents.get(CHECKPOINTS)).toBe("abcdefgh\n");
    expect(written.size).toBe(15);
    // Both sizes are known good now.
    await written.repair();
    expect(files.done.some((each) => each.startsWith("truncate"))).toBe(false);
  });

  test("fails if no byte is taken, and is undone by the next repair", async () => {
    const written = storage();
    await written.repair();
    files.most = 0;
    await expect(written.append(Buffer.from("6"))).rejects.toThrow("no more bytes");
    expect(written.size).toBe(5);
  });

  test("fails after the end", async () => {
    const written = storage();
    await written.repair();
    await written.close();
    await expect(written.append(Buffer.from("6"))).rejects.toThrow("not open");
    await expect(written.appendCheckpoint("d")).rejects.toThrow("not open");
  });

  test.each([
    [true, 0],
    [false, 1],
  ])("syncs the records before a checkpoint unless each is durable: %s", async (sync, syncs) => {
    const written = storage(sync);
    await written.repair();
    files.done.length = 0;
    await written.appendCheckpoint("d");
    expect(files.done.filter((each) => each === `sync ${FIRST}`)).toHaveLength(syncs);
  });
});

describe("the next segment", () => {
  test("is a new file, and the last one is closed", async () => {
    const written = storage();
    await written.repair();
    files.done.length = 0;
    await written.rotate();
    expect([written.segment, written.size]).toEqual([2, 0]);
    expect(files.done).toEqual([`open ${SECOND} new durable`, `close ${FIRST}`, "syncDir /chain"]);
    await written.append(Buffer.from("x"));
    expect([files.contents.get(FIRST), files.contents.get(SECOND)]).toEqual(["12345", "x"]);
  });

  test("that was made before a failure is emptied", async () => {
    const written = storage();
    await written.repair();
    await written.rotate();
    await written.append(Buffer.from("lost"));
    written.segment = 1;
    written.size = 5;
    await written.repair();
    await written.rotate();
    expect(files.done.filter((each) => each.startsWith(`open ${SECOND}`))).toEqual([
      `open ${SECOND} new durable`,
      `open ${SECOND} durable`,
    ]);
    expect(files.contents.get(SECOND)).toBe("");
  });
});
