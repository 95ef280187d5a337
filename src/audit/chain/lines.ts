/** Reads a file line by line, with constant memory for files of any size. */
import { closeSync, openSync, readSync } from "node:fs";

export interface Line {
  readonly text: string;
  /** The bytes, without the newline; valid until the next line is requested. */
  readonly bytes: Buffer;
  /** Offset of the line in the file. */
  readonly offset: number;
  /** Number of the line, from 1 at the beginning of the read. */
  readonly number: number;
  /** Whether the line ends with a newline; only a file's last line can lack it. */
  readonly ended: boolean;
}

const CHUNK = 1024 * 1024;
const NEWLINE = 10;

/** Reads the bytes from `from` to `to` synchronously; for the command line and for starts. */
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
