import { describe, expect, test } from "vitest";
import { GrpcMessages } from "./messages.ts";

const message = (payload: string): Buffer => {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(Buffer.byteLength(payload), 1);
  return Buffer.concat([prefix, Buffer.from(payload)]);
};

function feed(parts: readonly Buffer[], max = 100): { ok: boolean; got: string[] } {
  const messages = new GrpcMessages(max);
  const got: string[] = [];
  const ok = parts.every((part) => messages.push(part, (bytes) => got.push(bytes.toString())));
  return { ok, got };
}

describe("gRPC messages in DATA frames", () => {
  const wire = Buffer.concat([message("first"), message(""), message("third")]);

  test("cut at every two positions", () => {
    for (let i = 0; i <= wire.length; i++) {
      for (let j = i; j <= wire.length; j++) {
        const parts = [wire.subarray(0, i), wire.subarray(i, j), wire.subarray(j)];
        expect(feed(parts)).toEqual({ ok: true, got: ["first", "", "third"] });
      }
    }
  });

  test("a byte at a time", () => {
    expect(feed([...wire].map((byte) => Buffer.from([byte]))).got).toEqual(["first", "", "third"]);
  });

  test("a compressed message is refused", () => {
    const compressed = message("x");
    compressed[0] = 1;
    expect(feed([compressed]).ok).toBe(false);
    expect(feed([...compressed].map((byte) => Buffer.from([byte]))).ok).toBe(false);
  });

  test("a length above the maximum is refused before its bytes come", () => {
    expect(feed([message("x".repeat(101)).subarray(0, 5)]).ok).toBe(false);
    expect(
      feed([message("x".repeat(101)).subarray(0, 3), message("x".repeat(101)).subarray(3, 5)]).ok,
    ).toBe(false);
  });
});
