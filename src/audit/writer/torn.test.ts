/**
 * Recovery after a killed process: committed records stay, and the chain continues and verifies.
 */
import { spawn } from "node:child_process";
import {
  appendFileSync,
  cpSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { append, call, AuditWorld } from "../testing.ts";

let world: AuditWorld;
beforeEach(() => {
  world = new AuditWorld();
});
afterEach(() => world.remove());

const FILE = "000001.jsonl";

/** Creates a folder as a killed process leaves it: with unsigned records after the start. */
async function killed(
  records: number,
): Promise<{ readonly signedBytes: number; readonly bytes: Buffer; readonly copy: AuditWorld }> {
  const writer = await world.open();
  const signedBytes = statSync(world.path(FILE)).size;
  for (let i = 0; i < records; i++) await append(writer, call(i));
  const copy = new AuditWorld();
  cpSync(world.root, copy.root, { recursive: true });
  // The lock names this process, which is alive.
  rmSync(copy.path("writer.lock"));
  await writer.close();
  return { signedBytes, bytes: readFileSync(copy.path(FILE)), copy };
}

const ended = (bytes: Buffer): number => bytes.toString("latin1").split("\n").length - 1;

test(
  "cut at every byte after what is signed: all whole records stay, the chain goes on",
  { timeout: 300_000 },
  async () => {
    const { signedBytes, bytes, copy } = await killed(2);
    const signed = readFileSync(copy.path("checkpoints.jsonl"));
    for (let size = signedBytes; size <= bytes.length; size++) {
      const cut = bytes.subarray(0, size);
      writeFileSync(copy.path(FILE), cut);
      writeFileSync(copy.path("checkpoints.jsonl"), signed);
      await copy.write(1);
      const after = readFileSync(copy.path(FILE));
      expect(after.subarray(0, size).equals(cut), `bytes kept, ${size}`).toBe(true);
      const report = copy.verify();
      expect(report.fault, `size ${size}`).toBeUndefined();
      const whole = ended(cut);
      const partial = cut.at(-1) !== 10;
      const lastByte = bytes[size] === 10;
      expect(report.torn, `size ${size}`).toBe(partial && !lastByte ? 1 : 0);
      // RESUMED, the call, CLOSED; TORN; a record that lacked only its newline.
      expect(report.records, `size ${size}`).toBe(whole + 3 + (partial ? 1 : 0));
      expect(copy.types()).toContain("CHAIN.RESUMED");
    }
    copy.remove();
  },
);

test("cut into what is signed: the writer does not go on", async () => {
  const { signedBytes, bytes, copy } = await killed(0);
  for (let size = 0; size < signedBytes - 1; size += 13) {
    writeFileSync(copy.path(FILE), bytes.subarray(0, size));
    await expect(copy.open(), `size ${size}`).rejects.toThrow("its end was cut off");
  }
  copy.remove();
});

test(
  "killed before anything was signed, at every byte of the first records",
  { timeout: 300_000 },
  async () => {
    const { bytes, copy } = await killed(0);
    for (let size = 0; size <= bytes.length; size += 5) {
      rmSync(copy.path("checkpoints.jsonl"));
      writeFileSync(copy.path(FILE), bytes.subarray(0, size));
      await copy.write(1);
      expect(copy.verify().fault, `size ${size}`).toBeUndefined();
    }
    copy.remove();
  },
);

test.each([
  ["zeros, as a power cut leaves them", Buffer.alloc(5000)],
  ["zeros and the end of a line", Buffer.concat([Buffer.alloc(100), Buffer.from('"v":1}\n')])],
  ["lines of garbage", Buffer.from("a\n\n{}\nb")],
  ["a newline", Buffer.from("\n")],
  [
    "more than the part of the file that is read first",
    Buffer.alloc(9 * 1024 * 1024, `${"x".repeat(99)}\n`),
  ],
])("%s at the end are marked, and the chain goes on", async (_name, garbage) => {
  const { copy } = await killed(2);
  appendFileSync(copy.path(FILE), garbage);
  await copy.write(1);
  expect(copy.verify()).toMatchObject({ fault: undefined, torn: 1, closed: true });
  // The same again, after that one.
  appendFileSync(copy.path("checkpoints.jsonl"), '{"chain":"g');
  await copy.write(1);
  expect(copy.verify()).toMatchObject({ fault: undefined, torn: 1, closed: true });
  copy.remove();
});

test("the first record of a later segment, torn", async () => {
  const { copy } = await killed(2);
  writeFileSync(copy.path("000002.jsonl"), '{"chain":"gw","fields":{"la');
  await copy.write(1);
  expect(copy.verify()).toMatchObject({ fault: undefined, torn: 1, segments: 2 });
  expect(copy.types()).toContain("CHAIN.SEGMENT");
  copy.remove();
});

test("bytes after the mark are held against the chain as ever", async () => {
  const { copy, bytes } = await killed(2);
  truncateSync(copy.path(FILE), bytes.length - 30);
  await copy.write(1);
  const text = readFileSync(copy.path(FILE), "latin1");
  const torn = text.slice(0, bytes.length - 30).lastIndexOf("\n") + 10;
  writeFileSync(copy.path(FILE), `${text.slice(0, torn)}#${text.slice(torn + 1)}`, "latin1");
  expect(copy.verify().fault?.place.line).toBe(4);
  copy.remove();
});

test(
  "kill -9 while records are written, again and again: nothing committed is missing",
  { timeout: 300_000 },
  async () => {
    const node = path.resolve(import.meta.dirname, "../../../node_modules/.bin/node");
    let committed = 0;
    for (let round = 0; round < 6; round++) {
      const child = spawn(
        node,
        [
          path.join(import.meta.dirname, "testing-appender.ts"),
          world.dir,
          world.keyFile,
          String(committed),
        ],
        { stdio: ["ignore", "pipe", "inherit"] },
      );
      const gone = new Promise((resolve) => child.once("exit", resolve));
      let seen = 0;
      for await (const line of createInterface({ input: child.stdout })) {
        committed = Math.max(committed, Number(line));
        // Each round kills the process at another moment.
        if (++seen === 40 + round * 37) child.kill("SIGKILL");
      }
      await gone;
      const numbers = new Set(world.records().map(({ fields }) => fields["i"]));
      for (let i = 1; i <= committed; i++)
        expect(numbers.has(i), `record ${i}, round ${round}`).toBe(true);
      const writer = await world.open({ segmentBytes: 20_000 });
      expect(world.verify().fault).toBeUndefined();
      await writer.close();
      expect(world.verify()).toMatchObject({ fault: undefined, closed: true });
    }
    expect(world.types().filter((type) => type === "CHAIN.RESUMED").length).toBe(6);
  },
);
