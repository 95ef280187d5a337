/**
 * Our server against a peer that counts: how much of a stream and of a connection may be under way
 * (RFC 9113 section 5.2), what is answered to each frame, and who is cut off.
 */
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { Connection, type GrpcStream, MESSAGE_OFFSET, type StreamListener } from "./connection.ts";
import {
  CLIENT_PREFACE,
  DEFAULT_MAX_FRAME,
  DEFAULT_WINDOW,
  ErrorCode,
  Flag,
  frame,
  FrameType,
  RESPONSE_HEADER_BLOCK,
  rstStreamFrame,
  SettingId,
  settingsFrame,
  trailerBlock,
  windowUpdateFrame,
} from "./frames.ts";

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

const MAX_MESSAGE = 4 * 1024 * 1024;
const MIB = 1024 * 1024;

/** The other end of a connection. */
class Peer extends EventEmitter {
  readonly connection: Connection;
  readonly streams: GrpcStream[] = [];
  /** Events that listeners received, in order. */
  readonly told: string[] = [];
  readonly defects: unknown[] = [];
  destroyed = false;
  /** Answer of a listener to the end of its stream. */
  atEnd: "later" | undefined = "later";
  #out: Buffer[] = [];

  constructor() {
    super();
    this.connection = new Connection(this as unknown as Socket, {
      onStream: (stream) => this.#listener(stream),
      maxMessageBytes: MAX_MESSAGE,
      onDefect: (error) => this.defects.push(error),
    });
  }

  #listener(stream: GrpcStream): StreamListener {
    const name = this.streams.push(stream) - 1;
    return {
      message: (bytes) => this.told.push(`${name}: ${bytes.length} bytes`),
      end: () => {
        this.told.push(`${name}: end`);
        return this.atEnd;
      },
      reset: () => this.told.push(`${name}: reset`),
    };
  }

  write(bytes: Buffer): void {
    this.#out.push(Buffer.from(bytes));
  }
  cork(): void {}
  uncork(): void {}
  destroy(): void {
    this.destroyed = true;
  }

  say(...frames: readonly Buffer[]): void {
    this.emit("data", Buffer.concat(frames));
  }

  /** Returns the stream that the connection made of it. */
  open(id: number, flags: number = Flag.END_HEADERS): GrpcStream {
    this.say(frame(FrameType.HEADERS, flags, id, Buffer.alloc(0)));
    return this.streams.at(-1) as GrpcStream;
  }

  /** Returns the frames that were sent since the last call. */
  async heard(): Promise<readonly Frame[]> {
    await turn();
    const bytes = Buffer.concat(this.#out);
    this.#out = [];
    const frames: Frame[] = [];
    for (let at = 0; at < bytes.length;) {
      const end = at + 9 + bytes.readUIntBE(at, 3);
      frames.push({
        type: bytes[at + 3] ?? 0,
        flags: bytes[at + 4] ?? 0,
        streamId: bytes.readUInt32BE(at + 5),
        payload: bytes.subarray(at + 9, end),
      });
      at = end;
    }
    return frames;
  }

  /** Lengths of the DATA frames of a stream that came since it was last asked. */
  async data(id: number): Promise<readonly number[]> {
    const frames = await this.heard();
    return frames
      .filter(({ type, streamId }) => type === FrameType.DATA && streamId === id)
      .map(({ payload }) => payload.length);
  }
}

/** A message whose DATA is as long, with gRPC's prefix of 5 bytes. */
const messageOf = (length: number): Buffer => Buffer.alloc(MESSAGE_OFFSET + length - 5, "x");
const sum = (lengths: readonly number[]): number => lengths.reduce((a, b) => a + b, 0);
const dataFrame = (id: number, payload: Buffer, flags = 0): Buffer =>
  frame(FrameType.DATA, flags, id, payload);
/** A whole gRPC message. */
const grpc = (length: number, announced = length): Buffer => {
  const bytes = Buffer.alloc(5 + length);
  bytes.writeUInt32BE(announced, 1);
  return bytes;
};
const initialWindow = (value: number): Buffer =>
  settingsFrame([[SettingId.INITIAL_WINDOW_SIZE, value]]);

let peer: Peer;

beforeEach(async () => {
  peer = new Peer();
  peer.say(CLIENT_PREFACE);
  await peer.heard();
});

test("a connection begins with our settings and a larger window for all streams", async () => {
  expect(await new Peer().heard()).toMatchObject([
    {
      type: FrameType.SETTINGS,
      flags: 0,
      streamId: 0,
      payload: settingsFrame([
        [SettingId.HEADER_TABLE_SIZE, 0],
        [SettingId.MAX_CONCURRENT_STREAMS, 0x7fff_ffff],
        [SettingId.INITIAL_WINDOW_SIZE, MIB],
        [SettingId.MAX_FRAME_SIZE, MIB],
      ]).subarray(9),
    },
    {
      type: FrameType.WINDOW_UPDATE,
      streamId: 0,
      payload: windowUpdateFrame(0, 16 * MIB - DEFAULT_WINDOW).subarray(9),
    },
  ]);
});

describe("what we send", () => {
  test("is a message in one frame, behind the headers, when it fits", async () => {
    peer.open(1).send(messageOf(100));
    const [headers, data, ...more] = await peer.heard();
    expect(headers).toMatchObject({
      type: FrameType.HEADERS,
      flags: Flag.END_HEADERS,
      streamId: 1,
      payload: RESPONSE_HEADER_BLOCK,
    });
    expect(data).toMatchObject({ type: FrameType.DATA, flags: 0, streamId: 1 });
    expect([...(data?.payload.subarray(0, 5) ?? [])]).toEqual([0, 0, 0, 0, 95]);
    expect(more).toEqual([]);
  });

  test("is a message in pieces as one, whether it waits or not", async () => {
    const pieces = [Buffer.alloc(MESSAGE_OFFSET + 2, "a"), Buffer.from("bc"), Buffer.from("d")];
    const stream = peer.open(1);
    stream.send(pieces[0] as Buffer, ...pieces.slice(1));
    const whole = Buffer.from([0, 0, 0, 0, 5, ...Buffer.from("aabcd")]);
    expect((await peer.heard()).slice(1)).toMatchObject([{ payload: whole }]);
    peer.say(initialWindow(0));
    const waiting = peer.open(3);
    waiting.send(pieces[0] as Buffer, ...pieces.slice(1));
    peer.say(windowUpdateFrame(3, 100));
    const frames = (await peer.heard()).filter(({ type }) => type === FrameType.DATA);
    expect(Buffer.concat(frames.map(({ payload }) => payload))).toEqual(whole);
  });

  test("keeps to the largest frame of the peer, before and after it names another", async () => {
    const stream = peer.open(1);
    stream.send(messageOf(DEFAULT_MAX_FRAME));
    stream.send(messageOf(DEFAULT_MAX_FRAME + 1));
    expect(await peer.data(1)).toEqual([DEFAULT_MAX_FRAME, DEFAULT_MAX_FRAME, 1]);
    peer.say(settingsFrame([[SettingId.MAX_FRAME_SIZE, 20_000]]));
    stream.send(messageOf(20_001));
    expect(await peer.data(1)).toEqual([20_000, 1]);
  });

  test("ends where the stream's window ends, and goes on as far as it is opened", async () => {
    peer.say(initialWindow(1_000));
    peer.open(1).send(messageOf(2_500));
    expect(await peer.data(1)).toEqual([1_000]);
    peer.say(windowUpdateFrame(1, 400));
    expect(await peer.data(1)).toEqual([400]);
    peer.say(windowUpdateFrame(0, 400));
    expect(await peer.data(1)).toEqual([]);
    peer.say(windowUpdateFrame(1, 5_000));
    expect(await peer.data(1)).toEqual([1_100]);
  });

  test("uses a window up to its last byte, in a message that fits and in one that does not", async () => {
    peer.say(initialWindow(1_000));
    const stream = peer.open(1);
    stream.send(messageOf(600));
    stream.send(messageOf(400));
    expect(await peer.data(1)).toEqual([600, 400]);
    stream.send(messageOf(10));
    expect(await peer.data(1)).toEqual([]);
    peer.say(windowUpdateFrame(1, 10));
    expect(await peer.data(1)).toEqual([10]);
  });

  test("ends where the connection's window ends, whichever stream used it", async () => {
    peer.say(initialWindow(MIB));
    const first = peer.open(1);
    const second = peer.open(3);
    first.send(messageOf(16_000));
    first.send(messageOf(40_000));
    second.send(messageOf(16_000));
    const sent = (await peer.heard()).filter(({ type }) => type === FrameType.DATA);
    expect(sum(sent.map(({ payload }) => payload.length))).toBe(DEFAULT_WINDOW);
    peer.say(windowUpdateFrame(3, MIB));
    expect(await peer.heard()).toEqual([]);
    peer.say(windowUpdateFrame(0, 465));
    expect(await peer.data(3)).toEqual([465]);
    peer.say(windowUpdateFrame(0, 100_000));
    expect(await peer.data(3)).toEqual([16_000 - (DEFAULT_WINDOW - 56_000) - 465]);
    // The rest of the connection window remains for the small messages of all streams.
    first.send(messageOf(1_000));
    expect(await peer.data(1)).toEqual([1_000]);
  });

  test("keeps the order of a stream's messages: a small one waits behind a large one", async () => {
    peer.say(initialWindow(1_000));
    const stream = peer.open(1);
    stream.send(messageOf(1_500));
    stream.send(messageOf(10));
    expect(await peer.data(1)).toEqual([1_000]);
    peer.say(windowUpdateFrame(1, 505));
    expect(await peer.data(1)).toEqual([500, 5]);
    peer.say(windowUpdateFrame(1, 505));
    expect(await peer.data(1)).toEqual([5]);
  });

  test("of streams that wait, one with room goes on though another before it has none", async () => {
    peer.say(initialWindow(0));
    peer.open(1).send(messageOf(100));
    peer.open(3).send(messageOf(100));
    expect(await peer.data(3)).toEqual([]);
    peer.say(windowUpdateFrame(3, 100));
    expect(await peer.data(3)).toEqual([100]);
  });

  test("follows the peer's new initial window, on streams that are open too", async () => {
    const stream = peer.open(1);
    stream.send(messageOf(1_000));
    await peer.heard();
    // 900 bytes more are under way than the new window has.
    peer.say(initialWindow(100));
    stream.send(messageOf(50));
    expect(await peer.data(1)).toEqual([]);
    peer.say(windowUpdateFrame(1, 900));
    expect(await peer.data(1)).toEqual([]);
    peer.say(windowUpdateFrame(1, 20));
    expect(await peer.data(1)).toEqual([20]);
    peer.say(initialWindow(110));
    expect(await peer.data(1)).toEqual([10]);
    peer.say(initialWindow(1_000));
    expect(await peer.data(1)).toEqual([20]);
  });

  test("ends with the status only when all of it was sent, and takes nothing more", async () => {
    peer.say(initialWindow(10));
    const stream = peer.open(1);
    stream.send(messageOf(30));
    stream.finish();
    stream.send(messageOf(7));
    const before = await peer.heard();
    expect(before.at(-1)).toMatchObject({ type: FrameType.DATA });
    expect(peer.connection.streamCount).toBe(1);
    peer.say(windowUpdateFrame(1, 100));
    expect(await peer.heard()).toMatchObject([
      { type: FrameType.DATA, payload: { length: 20 } },
      {
        type: FrameType.HEADERS,
        flags: Flag.END_HEADERS | Flag.END_STREAM,
        streamId: 1,
        payload: trailerBlock(0),
      },
    ]);
    expect(peer.connection.streamCount).toBe(0);
    stream.send(messageOf(7));
    stream.finish();
    stream.fail(13);
    expect(await peer.heard()).toEqual([]);
  });

  test("is a status alone, behind the headers, when there was no message", async () => {
    peer.open(1).fail(13);
    expect(await peer.heard()).toMatchObject([
      { type: FrameType.HEADERS, flags: Flag.END_HEADERS, payload: RESPONSE_HEADER_BLOCK },
      { flags: Flag.END_HEADERS | Flag.END_STREAM, payload: trailerBlock(13) },
    ]);
  });

  test("of a failed stream that waits, its status is the failure's", async () => {
    peer.say(initialWindow(10));
    const stream = peer.open(1);
    stream.send(messageOf(30));
    stream.finish();
    stream.fail(13);
    await peer.heard();
    peer.say(windowUpdateFrame(1, 100));
    expect((await peer.heard()).at(-1)).toMatchObject({ payload: trailerBlock(13) });
  });
});

describe("what we take", () => {
  /** Increments of the windows that came since it was last asked, by stream. */
  async function opened(): Promise<readonly (readonly [id: number, by: number])[]> {
    const frames = await peer.heard();
    return frames
      .filter(({ type }) => type === FrameType.WINDOW_UPDATE)
      .map(({ streamId, payload }) => [streamId, payload.readUInt32BE(0)]);
  }

  test("opens a stream's window again by what came, once more than half of it is used", async () => {
    peer.open(1);
    peer.say(dataFrame(1, grpc(MIB / 2 - 5)));
    expect(await opened()).toEqual([]);
    peer.say(dataFrame(1, Buffer.alloc(1)));
    expect(await opened()).toEqual([[1, MIB / 2 + 1]]);
    peer.say(dataFrame(1, Buffer.alloc(1)));
    expect(await opened()).toEqual([]);
  });

  test("opens the connection's window again, also for bytes of streams that have ended", async () => {
    const send = async (times: number): Promise<readonly (readonly [number, number])[]> => {
      for (let i = 0; i < times; i++) peer.say(dataFrame(1, Buffer.alloc(MIB)));
      return opened();
    };
    expect(await send(8)).toEqual([]);
    peer.say(dataFrame(1, Buffer.alloc(1)));
    expect(await opened()).toEqual([[0, 8 * MIB + 1]]);
    expect(await send(8)).toEqual([]);
  });

  test("is each message once it is whole, and the end", () => {
    peer.open(1);
    const bytes = Buffer.concat([grpc(3), grpc(4)]);
    peer.say(dataFrame(1, bytes.subarray(0, 6)), dataFrame(1, bytes.subarray(6)));
    expect(peer.told).toEqual(["0: 3 bytes", "0: 4 bytes"]);
    peer.say(dataFrame(1, Buffer.alloc(0), Flag.END_STREAM));
    expect(peer.told.slice(2)).toEqual(["0: end"]);
  });

  test("a stream that ends is answered at once, or later where its listener says so", async () => {
    peer.atEnd = undefined;
    peer.open(1, Flag.END_HEADERS | Flag.END_STREAM);
    expect((await peer.heard()).at(-1)).toMatchObject({ streamId: 1, payload: trailerBlock(0) });
    peer.atEnd = "later";
    const stream = peer.open(3, Flag.END_HEADERS | Flag.END_STREAM);
    expect(peer.told).toEqual(["0: end", "1: end"]);
    expect(await peer.heard()).toEqual([]);
    stream.finish();
    expect((await peer.heard()).at(-1)).toMatchObject({ streamId: 3, payload: trailerBlock(0) });
  });

  test("is not a message above the maximum: its stream is reset, the others go on", async () => {
    peer.open(1);
    peer.open(3);
    peer.say(dataFrame(1, grpc(1, MAX_MESSAGE + 1)));
    expect(await peer.heard()).toMatchObject([
      { streamId: 1, payload: rstStreamFrame(1, ErrorCode.CANCEL).subarray(9) },
    ]);
    peer.say(dataFrame(1, grpc(2)), dataFrame(3, grpc(2)));
    expect(peer.told).toEqual(["0: reset", "1: 2 bytes"]);
    expect(peer.connection.streamCount).toBe(1);
  });

  test("is nothing of a stream that has ended, in the same bytes too", () => {
    const stream = peer.open(1);
    stream.fail(13);
    peer.say(dataFrame(1, grpc(2)), dataFrame(1, Buffer.alloc(0), Flag.END_STREAM));
    peer.say(rstStreamFrame(1, ErrorCode.CANCEL), windowUpdateFrame(1, 10));
    expect(peer.told).toEqual([]);
    expect(peer.destroyed).toBe(false);
  });
});

test("a stream that the peer resets sends nothing more, and its listener is told once", async () => {
  peer.say(initialWindow(10));
  const stream = peer.open(1);
  stream.send(messageOf(30));
  peer.open(3);
  await peer.heard();
  peer.say(rstStreamFrame(1, ErrorCode.CANCEL), rstStreamFrame(1, ErrorCode.CANCEL));
  peer.say(windowUpdateFrame(1, 100), initialWindow(1_000), windowUpdateFrame(0, 100));
  stream.send(messageOf(7));
  stream.finish();
  stream.fail(13);
  expect(await peer.data(1)).toEqual([]);
  expect(peer.told).toEqual(["0: reset"]);
  expect(peer.connection.streamCount).toBe(1);
  peer.emit("close");
  expect(peer.told).toEqual(["0: reset", "1: reset"]);
  expect(peer.connection.streamCount).toBe(0);
});

test("of a stream that the peer resets, nothing goes on when the connection has room again", async () => {
  peer.say(initialWindow(MIB));
  const stream = peer.open(1);
  stream.send(messageOf(DEFAULT_WINDOW + 1_000));
  expect(sum(await peer.data(1))).toBe(DEFAULT_WINDOW);
  peer.say(rstStreamFrame(1, ErrorCode.CANCEL), windowUpdateFrame(0, MIB));
  stream.send(messageOf(7));
  stream.finish();
  expect(await peer.heard()).toEqual([]);
});

test("settings and pings are acknowledged, and acknowledgements are not", async () => {
  const payload = Buffer.from("8 bytes.");
  peer.say(settingsFrame([]), frame(FrameType.PING, 0, 0, payload));
  expect(await peer.heard()).toMatchObject([
    { type: FrameType.SETTINGS, flags: Flag.ACK, streamId: 0, payload: Buffer.alloc(0) },
    { type: FrameType.PING, flags: Flag.ACK, streamId: 0, payload },
  ]);
  peer.say(
    frame(FrameType.SETTINGS, Flag.ACK, 0, Buffer.alloc(0)),
    frame(FrameType.PING, Flag.ACK, 0, payload),
  );
  expect(await peer.heard()).toEqual([]);
});

test("a connection that goes away names the last stream that it takes", async () => {
  peer.open(7);
  peer.connection.goAway();
  const [goAway] = await peer.heard();
  expect(goAway).toMatchObject({ type: FrameType.GOAWAY, streamId: 0 });
  expect([...(goAway?.payload ?? [])]).toEqual([0, 0, 0, 7, 0, 0, 0, 0]);
});

test.each<[string, Buffer]>([
  ["a stream that is ours to open", frame(FrameType.HEADERS, Flag.END_HEADERS, 4, Buffer.alloc(0))],
  ["a stream that was open", frame(FrameType.HEADERS, Flag.END_HEADERS, 3, Buffer.alloc(0))],
  ["a stream older than that", frame(FrameType.HEADERS, Flag.END_HEADERS, 1, Buffer.alloc(0))],
  ["a window of three bytes", frame(FrameType.WINDOW_UPDATE, 0, 0, Buffer.alloc(3))],
  ["a frame above the maximum", Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 3])],
  ["a push", frame(FrameType.PUSH_PROMISE, 0, 3, Buffer.alloc(4))],
])("a peer is cut off, with all its streams, for %s", async (_name, bytes) => {
  peer.open(3);
  await peer.heard();
  peer.say(bytes, frame(FrameType.HEADERS, Flag.END_HEADERS, 9, Buffer.alloc(0)));
  expect(peer.destroyed).toBe(true);
  expect(peer.told).toEqual(["0: reset"]);
  expect(peer.streams).toHaveLength(1);
  peer.emit("close");
  expect(peer.told).toEqual(["0: reset"]);
  peer.connection.goAway();
  expect(await peer.heard()).toEqual([]);
  expect(peer.defects).toEqual([]);
});

test("a listener that throws ends its connection, and the error is told", async () => {
  peer.open(1);
  await peer.heard();
  peer.told.push = () => {
    throw new Error("a listener must not throw");
  };
  peer.say(dataFrame(1, grpc(2)));
  expect(peer.defects.map(String)).toEqual(["Error: a listener must not throw"]);
  expect(peer.destroyed).toBe(true);
  peer.connection.goAway();
  expect(await peer.heard()).toEqual([]);
});

test("an error of the socket closes it", () => {
  peer.emit("error", new Error("EPIPE"));
  expect(peer.destroyed).toBe(true);
});
