/** HTTP/2 frames (RFC 9113 section 4 and 6), as far as a server for one trusted peer needs them. */

export const FRAME_HEADER_BYTES = 9;

export const FrameType = {
  DATA: 0x0,
  HEADERS: 0x1,
  RST_STREAM: 0x3,
  SETTINGS: 0x4,
  PUSH_PROMISE: 0x5,
  PING: 0x6,
  GOAWAY: 0x7,
  WINDOW_UPDATE: 0x8,
} as const;

export const Flag = { END_STREAM: 0x1, ACK: 0x1, END_HEADERS: 0x4, PADDED: 0x8 } as const;

export const SettingId = {
  HEADER_TABLE_SIZE: 0x1,
  MAX_CONCURRENT_STREAMS: 0x3,
  INITIAL_WINDOW_SIZE: 0x4,
  MAX_FRAME_SIZE: 0x5,
} as const;

export const ErrorCode = { CANCEL: 0x8 } as const;

/** First bytes that the client sends on a connection (RFC 9113 section 3.4). */
export const CLIENT_PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** Window of both peers before any SETTINGS (RFC 9113 section 6.9.2), in bytes. */
export const DEFAULT_WINDOW = 65_535;

/** Maximum frame size that a peer accepts before it announces another one, in bytes. */
export const DEFAULT_MAX_FRAME = 16_384;

/** Writes a frame header into `target` at `offset`. */
export function writeFrameHeader(
  target: Buffer,
  offset: number,
  length: number,
  type: number,
  flags: number,
  streamId: number,
): void {
  target[offset] = length >>> 16;
  target[offset + 1] = (length >>> 8) & 0xff;
  target[offset + 2] = length & 0xff;
  target[offset + 3] = type;
  target[offset + 4] = flags;
  target.writeUInt32BE(streamId, offset + 5);
}

/** Returns a complete frame with a small payload. */
export function frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const out = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payload.length);
  writeFrameHeader(out, 0, payload.length, type, flags, streamId);
  out.set(payload, FRAME_HEADER_BYTES);
  return out;
}

export function settingsFrame(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.allocUnsafe(settings.length * 6);
  settings.forEach(([id, value], i) => {
    payload.writeUInt16BE(id, i * 6);
    payload.writeUInt32BE(value, i * 6 + 2);
  });
  return frame(FrameType.SETTINGS, 0, 0, payload);
}

export function windowUpdateFrame(streamId: number, increment: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(increment, 0);
  return frame(FrameType.WINDOW_UPDATE, 0, streamId, payload);
}

export function rstStreamFrame(streamId: number, code: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(code, 0);
  return frame(FrameType.RST_STREAM, 0, streamId, payload);
}

/** HPACK (RFC 7541 section 6.2.2) literal without indexing: needs no table on either side. */
function literal(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0x00, name.length]),
    Buffer.from(name, "latin1"),
    Buffer.from([value.length]),
    Buffer.from(value, "latin1"),
  ]);
}

/** `:status 200` (static table index 8) and the gRPC content type. */
export const RESPONSE_HEADER_BLOCK = Buffer.concat([
  Buffer.from([0x88]),
  literal("content-type", "application/grpc"),
]);

export function trailerBlock(grpcStatus: number): Buffer {
  return literal("grpc-status", String(grpcStatus));
}
