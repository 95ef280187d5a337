/**
 * Connection is one HTTP/2 connection from Envoy, reduced to the needs of a bidirectional gRPC
 * method on a private Unix socket.
 *
 * Every socket serves exactly one method, so request header blocks are not decoded at all: a
 * HEADERS frame opens a stream. (HPACK state is never needed: we announce a header table of 0 and
 * send literals only.) What remains is framing, flow control in both directions, and gRPC's length
 * prefix. See docs/decisions for the reasons and the figures.
 */
import type { Socket } from "node:net";
import type { Clock } from "../../platform/clock.ts";
import { FrameReader, MAX_FRAME_BYTES } from "./frame-reader.ts";
import {
  DEFAULT_MAX_FRAME,
  DEFAULT_WINDOW,
  ErrorCode,
  Flag,
  FRAME_HEADER_BYTES,
  frame,
  FrameType,
  RESPONSE_HEADER_BLOCK,
  rstStreamFrame,
  SettingId,
  settingsFrame,
  trailerBlock,
  windowUpdateFrame,
  writeFrameHeader,
} from "./frames.ts";
import { GrpcMessages } from "./messages.ts";

/** Receives one stream's messages. Exactly one of `end` and `reset` is called, as the last call. */
export interface StreamListener {
  /** One complete gRPC message. Valid until the call returns; copy the bytes that are kept. */
  message(bytes: Buffer): void;
  /**
   * The peer has half-closed: no more messages. The stream is answered with grpc-status 0 after
   * this returns, or, if it returned `later`, when {@link GrpcStream.finish} is called.
   */
  end(): "later" | void;
  /** The peer cancelled the stream, or the connection was lost. */
  reset(): void;
}

export interface GrpcStream {
  /**
   * Sends one message whose bytes start at {@link MESSAGE_OFFSET} of `first`: the space before is
   * for the frame header and gRPC's prefix, so that a small message needs one allocation and one
   * write. The bytes of `rest` follow; they must not change until they are sent.
   */
  send(first: Buffer, ...rest: readonly Buffer[]): void;
  /** Ends the stream with grpc-status 0. */
  finish(): void;
  /** Ends the stream with a gRPC status; Envoy treats any but 0 as a failure of the processor. */
  fail(grpcStatus: number): void;
}

export const MESSAGE_OFFSET = FRAME_HEADER_BYTES + 5;

export interface ConnectionOptions {
  /** Called for each new stream. Neither it nor the listener may throw. */
  readonly onStream: (stream: GrpcStream) => StreamListener;
  /** Largest message accepted, bytes. */
  readonly maxMessageBytes: number;
  /** Receives an error of this transport itself; the connection is already closed by then. */
  readonly onDefect: (error: unknown) => void;
  /** Clock for measuring round trips to the peer. Without it, none are measured. */
  readonly pingClock?: Clock;
}

/** Interval between measurements of round trips. */
const PING_INTERVAL_MS = 25;

/**
 * Only few bytes of a large message are in transit at once, so that small messages of other streams
 * do not wait behind it. Most messages fit into the window of their stream.
 */
const RECEIVE_STREAM_WINDOW = 1024 * 1024;
const RECEIVE_CONNECTION_WINDOW = 16 * 1024 * 1024;
const OK_TRAILERS = trailerBlock(0);
const HEADERS_FRAME_BYTES = FRAME_HEADER_BYTES + RESPONSE_HEADER_BLOCK.length;

class Stream implements GrpcStream {
  readonly id: number;
  readonly connection: Connection;
  listener: StreamListener | undefined;
  readonly messages: GrpcMessages;
  sendWindow: number;
  received = 0;
  headersSent = false;
  closed = false;
  /** Messages that wait for window. */
  queue: Buffer[] = [];
  finishing: Buffer | undefined;

  constructor(connection: Connection, id: number, sendWindow: number, maxMessageBytes: number) {
    this.connection = connection;
    this.id = id;
    this.sendWindow = sendWindow;
    this.messages = new GrpcMessages(maxMessageBytes);
  }

  send(first: Buffer, ...rest: readonly Buffer[]): void {
    if (this.closed || this.finishing !== undefined) return;
    const length = rest.reduce((sum, buffer) => sum + buffer.length, first.length);
    first[FRAME_HEADER_BYTES] = 0;
    first.writeUInt32BE(length - MESSAGE_OFFSET, FRAME_HEADER_BYTES + 1);
    this.connection.sendData(this, first, rest, length - FRAME_HEADER_BYTES);
  }

  finish(): void {
    if (!this.closed && this.finishing === undefined) this.connection.finish(this, OK_TRAILERS);
  }

  fail(grpcStatus: number): void {
    if (!this.closed) this.connection.finish(this, trailerBlock(grpcStatus));
  }
}

export class Connection {
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #streams = new Map<number, Stream>();
  /** Streams with queued data, oldest first. */
  readonly #blocked = new Set<Stream>();
  readonly #frames: FrameReader;
  #lastStreamId = 0;
  #sendWindow = DEFAULT_WINDOW;
  #initialSendWindow = DEFAULT_WINDOW;
  #maxFrame = DEFAULT_MAX_FRAME;
  #received = 0;
  #out: Buffer[] = [];
  #outBytes = 0;
  #reading = false;
  #flushQueued = false;
  #dead = false;
  /** Time at which the pending ping was sent; undefined if there is none. */
  #pingSentAt: number | undefined;
  #roundTripMs = 0;
  #cancelPing: (() => void) | undefined;

  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#frames = new FrameReader({
      frame: (type, flags, streamId, payload) => this.#onFrame(type, flags, streamId, payload),
      data: (streamId, bytes) => this.#onBytes(streamId, bytes),
      dataEnd: (flags, streamId) => this.#onDataEnd(flags, streamId),
    });
    socket.on("data", (chunk: Buffer) => this.#guarded(() => this.#onData(chunk)));
    socket.on("close", () => this.#guarded(() => this.#die()));
    socket.on("error", () => socket.destroy());
    this.#write(
      settingsFrame([
        [SettingId.HEADER_TABLE_SIZE, 0],
        [SettingId.MAX_CONCURRENT_STREAMS, 0x7fff_ffff],
        [SettingId.INITIAL_WINDOW_SIZE, RECEIVE_STREAM_WINDOW],
        [SettingId.MAX_FRAME_SIZE, MAX_FRAME_BYTES],
      ]),
    );
    this.#write(windowUpdateFrame(0, RECEIVE_CONNECTION_WINDOW - DEFAULT_WINDOW));
    if (options.pingClock !== undefined) this.#pingLater(options.pingClock);
  }

  /**
   * Duration of the last round trip to the peer, or of the pending one if that is longer, in
   * milliseconds: the delay that the event loops on both sides cause.
   */
  get roundTripMs(): number {
    const { pingClock } = this.#options;
    if (pingClock === undefined || this.#pingSentAt === undefined) return this.#roundTripMs;
    return Math.max(this.#roundTripMs, pingClock.monotonic() - this.#pingSentAt);
  }

  get streamCount(): number {
    return this.#streams.size;
  }

  /** Tells the peer to open no more streams on this connection; open streams continue. */
  goAway(): void {
    const payload = Buffer.alloc(8);
    payload.writeUInt32BE(this.#lastStreamId, 0);
    this.#write(frame(FrameType.GOAWAY, 0, 0, payload));
  }

  /**
   * @param first begins with space for the frame's header
   * @param length of the data to send, without that space
   */
  sendData(stream: Stream, first: Buffer, rest: readonly Buffer[], length: number): void {
    if (!stream.headersSent) this.#sendHeaders(stream);
    if (
      length <= this.#maxFrame &&
      stream.queue.length === 0 &&
      length <= stream.sendWindow &&
      length <= this.#sendWindow
    ) {
      writeFrameHeader(first, 0, length, FrameType.DATA, 0, stream.id);
      stream.sendWindow -= length;
      this.#sendWindow -= length;
      this.#write(first);
      for (const buffer of rest) this.#write(buffer);
      return;
    }
    stream.queue.push(first.subarray(FRAME_HEADER_BYTES), ...rest);
    this.#blocked.add(stream);
    this.#drain(stream);
  }

  finish(stream: Stream, trailers: Buffer): void {
    if (stream.queue.length > 0) {
      stream.finishing = trailers;
      return;
    }
    if (!stream.headersSent) this.#sendHeaders(stream);
    this.#write(frame(FrameType.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, stream.id, trailers));
    stream.closed = true;
    this.#streams.delete(stream.id);
    this.#blocked.delete(stream);
  }

  #sendHeaders(stream: Stream): void {
    stream.headersSent = true;
    const out = Buffer.allocUnsafe(HEADERS_FRAME_BYTES);
    writeFrameHeader(
      out,
      0,
      RESPONSE_HEADER_BLOCK.length,
      FrameType.HEADERS,
      Flag.END_HEADERS,
      stream.id,
    );
    out.set(RESPONSE_HEADER_BLOCK, FRAME_HEADER_BYTES);
    this.#write(out);
  }

  /** Sends queued data of one stream as far as the windows allow. */
  #drain(stream: Stream): void {
    while (stream.queue.length > 0) {
      const head = stream.queue[0] as Buffer;
      const length = Math.min(head.length, this.#maxFrame, stream.sendWindow, this.#sendWindow);
      if (length <= 0) return;
      const header = Buffer.allocUnsafe(FRAME_HEADER_BYTES);
      writeFrameHeader(header, 0, length, FrameType.DATA, 0, stream.id);
      this.#write(header);
      this.#write(head.subarray(0, length));
      stream.sendWindow -= length;
      this.#sendWindow -= length;
      if (length === head.length) stream.queue.shift();
      else stream.queue[0] = head.subarray(length);
    }
    this.#blocked.delete(stream);
    if (stream.finishing !== undefined) this.finish(stream, stream.finishing);
  }

  #drainAll(): void {
    for (const stream of this.#blocked) {
      if (this.#sendWindow <= 0) return;
      this.#drain(stream);
    }
  }

  #onData(chunk: Buffer): void {
    this.#reading = true;
    const whole = this.#frames.push(chunk);
    this.#reading = false;
    if (!whole) return this.#protocolError();
    this.#flush();
  }

  #onFrame(type: number, flags: number, streamId: number, payload: Buffer): void {
    switch (type) {
      case FrameType.HEADERS:
        return this.#onHeaders(flags, streamId);
      case FrameType.RST_STREAM: {
        const stream = this.#streams.get(streamId);
        if (stream !== undefined) this.#drop(stream);
        return;
      }
      case FrameType.SETTINGS:
        return this.#onSettings(flags, payload);
      case FrameType.PING:
        return this.#onPing(flags, payload);
      case FrameType.WINDOW_UPDATE:
        return this.#onWindowUpdate(streamId, payload);
      case FrameType.PUSH_PROMISE:
        return this.#protocolError();
      default:
        // GOAWAY (the peer closes when its streams are done), PRIORITY, CONTINUATION, and unknown
        // types (section 4.1).
        return;
    }
  }

  #onHeaders(flags: number, streamId: number): void {
    if (streamId % 2 !== 1 || streamId <= this.#lastStreamId) return this.#protocolError();
    this.#lastStreamId = streamId;
    const stream = new Stream(
      this,
      streamId,
      this.#initialSendWindow,
      this.#options.maxMessageBytes,
    );
    this.#streams.set(streamId, stream);
    stream.listener = this.#options.onStream(stream);
    if ((flags & Flag.END_STREAM) !== 0) this.#onEnd(stream);
  }

  /** Handles bytes of a DATA frame's payload as they arrive. */
  #onBytes(streamId: number, bytes: Buffer): void {
    this.#received += bytes.length;
    if (this.#received > RECEIVE_CONNECTION_WINDOW / 2) {
      this.#write(windowUpdateFrame(0, this.#received));
      this.#received = 0;
    }
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return; // ended by this side just before
    stream.received += bytes.length;
    if (stream.received > RECEIVE_STREAM_WINDOW / 2) {
      this.#write(windowUpdateFrame(streamId, stream.received));
      stream.received = 0;
    }
    if (
      !stream.messages.push(bytes, (message) => stream.closed || stream.listener?.message(message))
    ) {
      this.#write(rstStreamFrame(streamId, ErrorCode.CANCEL));
      this.#drop(stream);
    }
  }

  #onDataEnd(flags: number, streamId: number): void {
    const stream = this.#streams.get(streamId);
    if (stream !== undefined && (flags & Flag.END_STREAM) !== 0) this.#onEnd(stream);
  }

  #onEnd(stream: Stream): void {
    if (stream.closed) return;
    const answer = stream.listener?.end();
    if (!stream.closed && answer !== "later") this.finish(stream, OK_TRAILERS);
  }

  #onSettings(flags: number, payload: Buffer): void {
    if ((flags & Flag.ACK) !== 0) return;
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      const value = payload.readUInt32BE(at + 2);
      switch (payload.readUInt16BE(at)) {
        case SettingId.INITIAL_WINDOW_SIZE: {
          const delta = value - this.#initialSendWindow;
          this.#initialSendWindow = value;
          for (const stream of this.#streams.values()) stream.sendWindow += delta;
          break;
        }
        case SettingId.MAX_FRAME_SIZE:
          this.#maxFrame = value;
          break;
        default:
          break;
      }
    }
    this.#write(frame(FrameType.SETTINGS, Flag.ACK, 0, Buffer.alloc(0)));
    this.#drainAll();
  }

  #onWindowUpdate(streamId: number, payload: Buffer): void {
    if (payload.length !== 4) return this.#protocolError();
    const increment = payload.readUInt32BE(0) & 0x7fff_ffff;
    if (streamId === 0) {
      this.#sendWindow += increment;
      return this.#drainAll();
    }
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return;
    stream.sendWindow += increment;
    if (stream.queue.length > 0) this.#drain(stream);
  }

  #pingLater(clock: Clock): void {
    this.#cancelPing = clock.after(PING_INTERVAL_MS, () =>
      this.#guarded(() => {
        if (this.#dead) return;
        this.#pingSentAt = clock.monotonic();
        this.#write(frame(FrameType.PING, 0, 0, Buffer.alloc(8)));
      }),
    );
  }

  #onPing(flags: number, payload: Buffer): void {
    if ((flags & Flag.ACK) === 0) {
      return this.#write(frame(FrameType.PING, Flag.ACK, 0, payload));
    }
    const { pingClock } = this.#options;
    if (pingClock === undefined || this.#pingSentAt === undefined) return;
    this.#roundTripMs = pingClock.monotonic() - this.#pingSentAt;
    this.#pingSentAt = undefined;
    this.#pingLater(pingClock);
  }

  #drop(stream: Stream): void {
    stream.closed = true;
    this.#streams.delete(stream.id);
    this.#blocked.delete(stream);
    stream.listener?.reset();
  }

  /** An event handler that throws would end the process, and every request with it. */
  #guarded(handle: () => void): void {
    try {
      handle();
    } catch (error) {
      this.#socket.destroy();
      this.#dead = true;
      this.#options.onDefect(error);
    }
  }

  #protocolError(): void {
    this.#socket.destroy();
    this.#die();
  }

  #die(): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#cancelPing?.();
    this.#frames.stop();
    for (const stream of this.#streams.values()) this.#drop(stream);
  }

  /** Collects the writes of one turn of the event loop for one system call. */
  #write(buffer: Buffer): void {
    this.#out.push(buffer);
    this.#outBytes += buffer.length;
    if (this.#reading || this.#flushQueued) return;
    this.#flushQueued = true;
    queueMicrotask(() => {
      this.#flushQueued = false;
      this.#guarded(() => this.#flush());
    });
  }

  #flush(): void {
    if (this.#out.length === 0 || this.#dead) return;
    const out = this.#out;
    const bytes = this.#outBytes;
    this.#out = [];
    this.#outBytes = 0;
    if (out.length === 1) {
      this.#socket.write(out[0] as Buffer);
    } else if (bytes < 65_536) {
      this.#socket.write(Buffer.concat(out, bytes));
    } else {
      this.#socket.cork();
      for (const buffer of out) this.#socket.write(buffer);
      this.#socket.uncork();
    }
  }
}
