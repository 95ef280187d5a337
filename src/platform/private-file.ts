/**
 * Files that hold a private key, in folders that other users may know. Anybody who can read, write
 * or replace such a file can impersonate this service. Therefore a file is refused unless it is a
 * regular file that belongs to this user alone; the error message names the fix.
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
  /**
   * Root may also read a file that belongs to the folder's owner: `svc run` runs as root and reads
   * the files of a user's svc up.
   */
  readonly ofFolderOwner?: boolean;
}

/**
 * @param what description of the file for messages: `The workload key`
 * @throws PrivateFileError if the file is not private to this user; ENOENT and similar errors are
 * passed on
 */
export function readPrivateFile(
  file: string,
  what: string,
  { ofFolderOwner = false }: PrivateFileOptions = {},
): Buffer {
  const fd = openPlain(file, what);
  try {
    // Checks the opened file, because the name may lead to another file by now.
    const stats = fs.fstatSync(fd);
    const wrong = faultOf(stats, file, ofFolderOwner);
    if (wrong !== undefined) throw new PrivateFileError(`${what} ${file} ${wrong}`);
    return fs.readFileSync(fd);
  } finally {
    fs.closeSync(fd);
  }
}

/** @throws PrivateFileError if another user could replace files in the folder */
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
      `${what} ${file} is a symbolic link, which somebody else may redirect. Replace it by ` +
        `the file itself: cp --remove-destination "$(readlink -f ${file})" ${file}`,
    );
  }
}

function faultOf(stats: fs.Stats, file: string, ofFolderOwner: boolean): string | undefined {
  if (!stats.isFile()) return "is not a regular file. Replace it by a regular file.";
  if (stats.nlink > 1)
    return (
      `has ${stats.nlink} names (hard links): somebody else may have created it. Make a ` +
      `separate copy: cp ${file} ${file}.new && mv ${file}.new ${file}`
    );
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
  return `belongs to the user ${uid}, not to the user ${me()} that svc runs as`;
}

function me(): number {
  return process.geteuid?.() ?? 0;
}

function octal(mode: number): string {
  return (mode & 0o7777).toString(8);
}
