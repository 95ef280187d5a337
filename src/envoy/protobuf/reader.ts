/** Reads protobuf, as far as Envoy's messages to this service need it. */

/** Error for a malformed message. */
export class WireError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "WireError";
  }
}

/** Walks a message in protobuf's wire format: https://protobuf.dev/programming-guides/encoding/ */
export class Reader {
  readonly buffer: Buffer;
  at: number;
  readonly end: number;

  constructor(buffer: Buffer, at: number, end: number) {
    this.buffer = buffer;
    this.at = at;
    this.end = end;
  }

  /** @returns 0 at the end, which no field's tag can be. */
  tag(): number {
    return this.at < this.end ? this.varint() : 0;
  }

  /** Values up to 2^53; lengths and tags are far below. */
  varint(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      if (this.at >= this.end) throw new WireError("varint beyond the end");
      const byte = this.buffer[this.at++] as number;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
      if (scale > 2 ** 63) throw new WireError("varint too long");
    }
  }

  /** Skips a length-delimited field and returns its start offset. */
  span(): number {
    const length = this.varint();
    const start = this.at;
    if (start + length > this.end) throw new WireError("field beyond the end");
    this.at = start + length;
    return start;
  }

  skip(tag: number): void {
    switch (tag & 7) {
      case 0:
        this.varint();
        return;
      case 1:
        this.at += 8;
        return;
      case 2:
        this.span();
        return;
      case 5:
        this.at += 4;
        return;
      default:
        throw new WireError(`wire type ${tag & 7}`);
    }
  }
}

/** Tag of a field: its number and wire type. */
export const field = (number: number, wireType: number): number => (number << 3) | wireType;

const NO_PART = new Reader(Buffer.alloc(0), 0, 0);

/**
 * Calls `each` for every field: with `part` for a field that has a length, with `value` for a
 * varint. Fields of other wire types are skipped.
 */
export function walk(
  reader: Reader,
  each: (tag: number, part: Reader, value: number) => unknown,
): void {
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if ((tag & 7) === 2) {
      const start = reader.span();
      each(tag, new Reader(reader.buffer, start, reader.at), 0);
    } else if ((tag & 7) === 0) each(tag, NO_PART, reader.varint());
    else reader.skip(tag);
  }
}

/** Calls the handler of each length-delimited field, by its tag. Other fields are skipped. */
export function dispatch(
  reader: Reader,
  handlers: Readonly<Record<number, (field: Reader) => unknown>>,
): void {
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    const handler = handlers[tag];
    if (handler === undefined) {
      reader.skip(tag);
      continue;
    }
    const start = reader.span();
    handler(new Reader(reader.buffer, start, reader.at));
  }
}
