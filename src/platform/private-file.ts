/**
 * Files that hold a key of ours, in folders that others may know of. Who could read, write or
 * replace one could be us: so it is refused unless it is a plain file of this user alone, and the
 * message says how to mend it.
 */
import fs from "node:fs";
import path from "node:path";

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = fs.constants;

const FOR_OTHERS = 0o077;
const WRITE_FOR_OTHERS = 0o022;

export class PrivateFileError extends Error {
  override readonly name = "PrivateFileError";
}

export interface PrivateFileOptions {
  /** Root may also read a file of its folder's owner: `svc run`, which is root, of a user's svc up. */
  readonly ofFolderOwner?: boolean;
}

/**
 * @param what the file in words, for messages: `The workload key`
 * @throws PrivateFileError where it is not this user's alone; ENOENT and the like as they are
 */
export function readPrivateFile(
  file: string,
  what: string,
  { ofFolderOwner = false }: PrivateFileOptions = {},
): Buffer {
  const fd = openPlain(file, what);
  try {
    // Of what was opened: the name may lead to something else by now.
    const stats = fs.fstatSync(fd);
    const wrong = faultOf(stats, file, ofFolderOwner);
    if (wrong !== undefined) throw new PrivateFileError(`${what} ${file} ${wrong}`);
    return fs.readFileSync(fd);
  } finally {
    fs.closeSync(fd);
  }
}

/** @throws PrivateFileError where somebody else could replace what is in it */
export function assertPrivateFolder(dir: string, what: string): void {
  const { uid, mode } = fs.statSync(dir);
  if (uid !== me())
    throw new PrivateFileError(`${what} ${dir} ${notMine(uid)}: chown ${me()} ${dir}`);
  if ((mode & WRITE_FOR_OTHERS) !== 0)
    throw new PrivateFileError(
      `${what} ${dir} can be written to by others (mode ${octal(mode)}): chmod go-w ${dir}`,
    );
}

function openPlain(file: string, what: string): number {
  try {
    return fs.openSync(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ELOOP") throw error;
    throw new PrivateFileError(
      `${what} ${file} is a symbolic link, which somebody else may turn elsewhere. Put the file itself there: cp --remove-destination "$(readlink -f ${file})" ${file}`,
    );
  }
}

function faultOf(stats: fs.Stats, file: string, ofFolderOwner: boolean): string | undefined {
  if (!stats.isFile()) return "is not a file. Put the file itself there.";
  if (stats.nlink > 1)
    return `has ${stats.nlink} names (hard links): somebody else may have put it there. Make a file of its own: cp ${file} ${file}.new && mv ${file}.new ${file}`;
  if (!isOurs(stats.uid, file, ofFolderOwner))
    return `${notMine(stats.uid)}: chown ${me()} ${file}`;
  if ((stats.mode & FOR_OTHERS) !== 0)
    return `is open to others (mode ${octal(stats.mode)}): chmod 600 ${file}`;
  return undefined;
}

function isOurs(uid: number, file: string, ofFolderOwner: boolean): boolean {
  if (uid === me()) return true;
  return ofFolderOwner && me() === 0 && uid === fs.statSync(path.dirname(file)).uid;
}

function notMine(uid: number): string {
  return `belongs to the user ${uid}, and not to the user ${me()} that svc runs as`;
}

function me(): number {
  return process.geteuid?.() ?? 0;
}

function octal(mode: number): string {
  return (mode & 0o7777).toString(8);
}
