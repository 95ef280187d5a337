import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { execFileSync } from "node:child_process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { assertPrivateFolder, PrivateFileError, readPrivateFile } from "./private-file.ts";

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-private-"));
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

const isRoot = process.getuid?.() === 0;

function key(mode = 0o600, name = "a.key"): string {
  const file = path.join(dir, name);
  writeFileSync(file, "secret");
  chmodSync(file, mode);
  return file;
}

const read = (file: string, options = {}): string =>
  readPrivateFile(file, "The key", options).toString();

describe("a private file", () => {
  test.each([0o600, 0o400, 0o700])("of this user, with mode %o, is read", (mode) => {
    expect(read(key(mode))).toBe("secret");
  });

  test.each([0o604, 0o640, 0o660, 0o602, 0o644, 0o777, 0o610])(
    "with mode %o is refused, with the command that mends it",
    (mode) => {
      const file = key(mode);
      expect(() => read(file)).toThrow(PrivateFileError);
      expect(() => read(file)).toThrow(
        `The key ${file} is open to others (mode ${mode.toString(8)}): chmod 600 ${file}`,
      );
      execFileSync("chmod", ["600", file]);
      expect(read(file)).toBe("secret");
    },
  );

  test("that is a symbolic link is refused, wherever it leads", () => {
    const real = key();
    const link = path.join(dir, "link");
    symlinkSync(real, link);
    expect(() => read(link)).toThrow(`The key ${link} is a symbolic link`);
    expect(() => read(link)).toThrow(/Replace it by the file itself: cp --remove-destination /);
    symlinkSync(path.join(dir, "nowhere"), `${link}2`);
    expect(() => read(`${link}2`)).toThrow("is a symbolic link");
  });

  test("that has another name, too, is refused", () => {
    const file = key();
    linkSync(file, path.join(dir, "other"));
    expect(() => read(file)).toThrow(/has 2 names \(hard links\)/);
  });

  test("that is no file is refused, and is not waited for", () => {
    mkdirSync(path.join(dir, "folder"), { mode: 0o700 });
    expect(() => read(path.join(dir, "folder"))).toThrow("is not a regular file");
    const fifo = path.join(dir, "fifo");
    execFileSync("mkfifo", ["-m", "600", fifo]);
    expect(() => read(fifo)).toThrow("is not a regular file");
  });

  test("that is not there is told as such", () => {
    expect(() => read(path.join(dir, "none"))).toThrow(
      expect.objectContaining({ code: "ENOENT" }) as Error,
    );
  });

  test.runIf(isRoot)("of another user is refused, with the command that mends it", () => {
    const file = key();
    chownSync(file, 65_532, 65_532);
    expect(() => read(file)).toThrow(
      `The key ${file} belongs to the user 65532, not to the user 0 that svc runs as: ` +
        `chown 0 ${file}`,
    );
  });

  test.runIf(isRoot)(
    "of its folder's owner is read by root where that is said, and no other's",
    () => {
      const file = key();
      chownSync(file, 65_532, 65_532);
      expect(() => read(file, { ofFolderOwner: true })).toThrow("belongs to the user 65532");
      chownSync(dir, 65_532, 65_532);
      expect(read(file, { ofFolderOwner: true })).toBe("secret");
      expect(() => read(file)).toThrow("belongs to the user 65532");
      chownSync(file, 65_533, 65_533);
      expect(() => read(file, { ofFolderOwner: true })).toThrow("belongs to the user 65533");
      chownSync(file, 0, 0);
      expect(read(file, { ofFolderOwner: true })).toBe("secret");
    },
  );
});

describe("a private folder", () => {
  test.each([0o700, 0o755, 0o750])("of this user, with mode %o, is one", (mode) => {
    chmodSync(dir, mode);
    expect(() => assertPrivateFolder(dir, "The folder")).not.toThrow();
  });

  test.each([0o777, 0o775, 0o702, 0o1777])("with mode %o is refused", (mode) => {
    chmodSync(dir, mode);
    expect(() => assertPrivateFolder(dir, "The folder")).toThrow(
      `The folder ${dir} can be written to by others (mode ${mode.toString(8)}): chmod go-w ${dir}`,
    );
  });

  test.runIf(isRoot)("of another user is refused", () => {
    chownSync(dir, 65_532, 65_532);
    expect(() => assertPrivateFolder(dir, "The folder")).toThrow(
      `The folder ${dir} belongs to the user 65532, not to the user 0 that svc runs as: ` +
        `chown 0 ${dir}`,
    );
  });
});
