/**
 * Writes protobuf's wire format, as far as our messages to Envoy need it:
 * https://protobuf.dev/programming-guides/encoding/
 */

/** Returns the size of a varint, bytes. */
export function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) bytes += 1;
  return bytes;
}

/** Writes a varint and returns the position behind it. */
export function writeVarint(target: Buffer, at: number, value: number): number {
  let next = at;
  let rest = value;
  while (rest >= 128) {
    target[next++] = (rest % 128) | 0x80;
    rest = Math.floor(rest / 128);
  }
  target[next++] = rest;
  return next;
}

/** Returns the beginning of a field of so many bytes, which follow it. */
export function fieldHeader(number: number, length: number): Buffer {
  const tag = (number << 3) | 2;
  const out = Buffer.allocUnsafe(varintBytes(tag) + varintBytes(length));
  writeVarint(out, writeVarint(out, 0, tag), length);
  return out;
}

/** Returns a length-delimited field: bytes, or a message. */
export function bytesField(number: number, payload: Buffer): Buffer {
  return Buffer.concat([fieldHeader(number, payload.length), payload]);
}

/** Returns a string field. */
export function textField(number: number, value: string): Buffer {
  return bytesField(number, Buffer.from(value));
}

/** Returns a varint field: an integer, a boolean or an enum. */
export function varintField(number: number, value: number): Buffer {
  const tag = number << 3;
  const out = Buffer.allocUnsafe(varintBytes(tag) + varintBytes(value));
  writeVarint(out, writeVarint(out, 0, tag), value);
  return out;
}
