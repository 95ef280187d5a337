/** A file's lines, one after the other: memory stays flat however large the file. */
import { closeSync, openSync, readSync } from "node:fs";

export interface Line {
  readonly text: string;
  /** The bytes, without the line's end; good until the next line is asked for. */
  readonly bytes: Buffer;
  /** Where in the file it begins. */
  readonly offset: number;
  /** From 1, counted from where the reading began. */
  readonly number: number;
  /** It ends with a newline; only a file's last can lack it. */
  readonly ended: boolean;
}

const CHUNK = 1024 * 1024;
const NEWLINE = 10;

/** Reads the bytes `from` to `to`, synchronously: for the command line and for starts. */
export function* readLines(
  file: string,
  from = 0,
  to = Number.POSITIVE_INFINITY,
): Generator<Line, void, void> {
  const fd = openSync(file, "r");
  try {
    let buffer = Buffer.allocUnsafe(CHUNK);
    let filled = 0;
    let offset = from;
    let number = 0;
    for (;;) {
      if (filled === buffer.length) buffer = Buffer.concat([buffer], buffer.length * 2);
      const wanted = Math.min(buffer.length - filled, to - offset - filled);
      const got = wanted > 0 ? readSync(fd, buffer, filled, wanted, offset + filled) : 0;
      if (got === 0) break;
      const full = buffer.subarray(0, filled + got);
      let begin = 0;
      for (let end = full.indexOf(NEWLINE, filled); end >= 0; end = full.indexOf(NEWLINE, begin)) {
        number++;
        yield {
          text: full.toString("utf8", begin, end),
          bytes: full.subarray(begin, end),
          offset: offset + begin,
          number,
          ended: true,
        };
        begin = end + 1;
      }
      full.copyWithin(0, begin);
      filled = full.length - begin;
      offset += begin;
    }
    if (filled > 0)
      yield {
        text: buffer.toString("utf8", 0, filled),
        bytes: buffer.subarray(0, filled),
        offset,
        number: number + 1,
        ended: false,
      };
  } finally {
    closeSync(fd);
  }
}
