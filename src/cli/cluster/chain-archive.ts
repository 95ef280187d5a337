/**
 * Chains on their way out of a pod: what a shell in the container prints, and its reader. What a
 * pod sends is not trusted: only files of a chain are written, each once, below one folder.
 */
import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import path from "node:path";
import { chainDir, CHECKPOINTS, PUBLIC_KEY, segmentName } from "../../audit/chain/layout.ts";

/**
 * Prints `<size> <writer>/<file>`, a line, and the file's content, for each file of each chain in
 * the folder `$1` whose name begins with `$2`. The checkpoints come first: what they sign has been
 * written by then. A shell needs little of the container's memory, which it shares with the proxy.
 * A folder that does not exist has no chains; one that cannot be read is an error.
 */
export const ARCHIVE_SCRIPT = `cd "\${1%/*}" || exit 1
[ -e "$1" ] || exit 0
cd "$1" || exit 1
for d in "$2"*/; do
  [ -d "$d" ] || continue
  if [ ! -r "$d" ] || [ ! -x "$d" ]; then echo "$d cannot be read" >&2; exit 1; fi
  for f in "\${d}${CHECKPOINTS}" "\${d}${PUBLIC_KEY}" "$d"[0-9]*.jsonl; do
    if [ -f "$f" ] && [ ! -L "$f" ]; then
      n=$(stat -c %s "$f") && echo "$n $f" && head -c "$n" "$f" || exit 1
    fi
  done
done`;

/** Maximum size of the chains of one pod. */
const MAX_BYTES = 16 * 1024 ** 3;
const MAX_HEADER = 512;

/** The bytes that a pod sent are not an archive of chains. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";
}

/** Writes the files of an archive below a folder, as its parts arrive. */
export class ArchiveReader {
  readonly #dir: string;
  #header = "";
  #file: number | undefined;
  /** Bytes of the current file that are still to come. */
  #left = 0;
  #total = 0;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** @throws ArchiveError, AuditError */
  write(part: Buffer): void {
    let rest = part;
    while (rest.length > 0) {
      if (this.#file === undefined) {
        const end = rest.indexOf("\n");
        this.#header += rest.toString("latin1", 0, end < 0 ? rest.length : end);
        if (this.#header.length > MAX_HEADER) throw new ArchiveError("a header is too long");
        if (end < 0) return;
        rest = rest.subarray(end + 1);
        this.#open(this.#header);
        this.#header = "";
      }
      const content = rest.subarray(0, this.#left);
      if (this.#file !== undefined && content.length > 0) writeSync(this.#file, content);
      this.#left -= content.length;
      rest = rest.subarray(content.length);
      if (this.#left === 0) this.close();
    }
  }

  /** Ends the archive. @throws ArchiveError if its last file is not whole */
  end(): void {
    const isWhole = this.#file === undefined && this.#header === "";
    this.close();
    if (!isWhole) throw new ArchiveError("it ends within a file");
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #open(header: string): void {
    const [, size = "", writer = "", name = ""] =
      /^(\d{1,15}) ([^/ ]+)\/([^/ ]+)$/.exec(header) ?? [];
    if (!isChainFile(name)) throw new ArchiveError("it holds another file than those of a chain");
    this.#left = Number(size);
    this.#total += this.#left;
    if (this.#total > MAX_BYTES) throw new ArchiveError("the chains exceed 16 GiB");
    const dir = chainDir(this.#dir, writer);
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    try {
      this.#file = openSync(path.join(dir, name), "wx", 0o600);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      throw new ArchiveError("it holds a file twice");
    }
  }
}

function isChainFile(name: string): boolean {
  const number = Number(/^(\d{6,15})\.jsonl$/.exec(name)?.[1]);
  return (
    name === CHECKPOINTS || name === PUBLIC_KEY || (number >= 1 && segmentName(number) === name)
  );
}
