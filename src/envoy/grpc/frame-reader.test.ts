import { describe, expect, test } from "vitest";
import { FrameReader, MAX_FRAME_BYTES } from "./frame-reader.ts";
import { CLIENT_PREFACE, Flag, frame, FrameType } from "./frames.ts";

/** Returns the listener's calls, in order; pieces of one DATA frame are joined. */
function read(parts: readonly Buffer[]): { ok: boolean; told: string[] } {
  const told: string[] = [];
  let data = "";
  const reader = new FrameReader({
    frame: (type, flags, id, payload) =>
      told.push(`${type} ${flags} ${id} ${payload.toString("latin1")}`),
    data: (id, bytes) => {
      expect(bytes.length).toBeGreaterThan(0);
      data += `${id}:${bytes.toString("latin1")};`;
    },
    dataEnd: (flags, id) => {
      told.push(`data ${flags} ${id} ${data.replaceAll(`;${id}:`, "")}`);
      data = "";
    },
  });
  const ok = parts.every((part) => reader.push(part));
  return { ok, told };
}

const { DATA, HEADERS, PING } = FrameType;

describe("frames", () => {
  const wire = Buffer.concat([
    CLIENT_PREFACE,
    frame(HEADERS, Flag.END_HEADERS, 1, Buffer.from("h")),
    frame(DATA, 0, 1, Buffer.from("abc")),
    frame(DATA, 0, 1, Buffer.alloc(0)),
    frame(PING, 0, 0, Buffer.from("12345678")),
    frame(DATA, Flag.PADDED | Flag.END_STREAM, 3, Buffer.from([2, 0x78, 0x79, 0, 0])),
    frame(DATA, Flag.END_STREAM, 1, Buffer.from("d")),
  ]);
  const told = [
    "1 4 1 h",
    "data 0 1 1:abc;",
    "data 0 1 ",
    "6 0 0 12345678",
    "data 9 3 3:xy;",
    "data 1 1 1:d;",
  ];

  test("whole", () => {
    expect(read([wire])).toEqual({ ok: true, told });
  });

  test("cut at every position", () => {
    for (let cut = 0; cut <= wire.length; cut += 1) {
      expect(read([wire.subarray(0, cut), wire.subarray(cut)])).toEqual({ ok: true, told });
    }
  });

  test("a byte at a time", () => {
    expect(read([...wire].map((byte) => Buffer.from([byte])))).toEqual({ ok: true, told });
  });

  test("a payload of DATA is handed on before its frame is whole", () => {
    const data = Buffer.concat([CLIENT_PREFACE, frame(DATA, 0, 1, Buffer.from("abcdef"))]);
    const pieces: string[] = [];
    const reader = new FrameReader({
      frame: () => undefined,
      data: (_id, bytes) => pieces.push(bytes.toString()),
      dataEnd: () => pieces.push("end"),
    });
    reader.push(data.subarray(0, -2));
    expect(pieces).toEqual(["abcd"]);
    reader.push(data.subarray(-2));
    expect(pieces).toEqual(["abcd", "ef", "end"]);
  });
});

describe("a peer that is no HTTP/2 client is refused", () => {
  const header = (length: number): Buffer => {
    const bytes = frame(DATA, 0, 1, Buffer.alloc(0));
    bytes.writeUIntBE(length, 0, 3);
    return bytes;
  };

  test.each([
    ["another preface", Buffer.from("GET / HTTP/1.1\r\n\r\n......")],
    ["another preface, as soon as it differs", Buffer.from("G")],
    ["a frame that is too long", Buffer.concat([CLIENT_PREFACE, header(MAX_FRAME_BYTES + 1)])],
    [
      "more padding than payload",
      Buffer.concat([CLIENT_PREFACE, frame(DATA, Flag.PADDED, 1, Buffer.from([2, 0]))]),
    ],
    [
      "padding without its length",
      Buffer.concat([CLIENT_PREFACE, frame(DATA, Flag.PADDED, 1, Buffer.alloc(0))]),
    ],
  ])("%s", (_name, bytes) => {
    expect(read([bytes])).toEqual({ ok: false, told: [] });
  });

  test("nothing is read after stop", () => {
    const told: number[] = [];
    const reader = new FrameReader({
      frame: (type) => {
        told.push(type);
        reader.stop();
      },
      data: () => undefined,
      dataEnd: () => undefined,
    });
    const ping = frame(PING, 0, 0, Buffer.alloc(8));
    reader.push(Buffer.concat([CLIENT_PREFACE, ping, ping]));
    reader.push(ping);
    expect(told).toEqual([PING]);
  });
});
