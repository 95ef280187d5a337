import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { SessionSeal } from "./seal.ts";

const key = randomBytes(32);
const seal = new SessionSeal(() => [key]);

test("a session opens on every replica, for its owner alone", () => {
  const keys = [Buffer.from(key)];
  const other = new SessionSeal(() => keys);
  const sealed = seal.seal("alice", "session-1");
  expect(sealed).toMatch(/^[\w-]+$/);
  expect(sealed).not.toContain("session");
  expect(other.open("alice", sealed)).toBe("session-1");
  expect(seal.open("bob", sealed)).toBeUndefined();
  expect(seal.open("", sealed)).toBeUndefined();
});

test("what was not sealed does not open", () => {
  const sealed = seal.seal("alice", "session-1");
  const flipped = (at: number) => {
    const bytes = Buffer.from(sealed, "base64url");
    bytes[at] = (bytes[at] as number) ^ 1;
    return bytes.toString("base64url");
  };
  const tries = ["", "session-1", "x", `${sealed}A`, sealed.slice(1), `${sealed}=`, `${sealed} `];
  for (const text of [...tries, flipped(0), flipped(13), flipped(30)])
    expect(seal.open("alice", text)).toBeUndefined();
});

test("keys are rotated with an overlap", () => {
  let keys: readonly Uint8Array[] = [key];
  const rotating = new SessionSeal(() => keys);
  const old = rotating.seal("a", "s");
  const event = rotating.wrapEvent("a", "7");
  keys = [randomBytes(32), key];
  expect(rotating.open("a", old)).toBe("s");
  expect(rotating.unwrapEvent("a", event)).toBe("7");
  expect(rotating.seal("a", "s").length).toBe(old.length);
  keys = [randomBytes(32)];
  expect(rotating.open("a", old)).toBeUndefined();
  expect(rotating.unwrapEvent("a", event)).toBeUndefined();
});

test("an event id is valid in its own session alone", () => {
  for (const id of ["1", "", "stream_7", "é", "x".repeat(500)]) {
    const wrapped = seal.wrapEvent("session-1", id);
    expect(seal.unwrapEvent("session-1", wrapped)).toBe(id);
    expect(seal.unwrapEvent("session-2", wrapped)).toBeUndefined();
    expect(seal.unwrapEvent("session-1", `${wrapped}2`)).toBeUndefined();
  }
  for (const text of ["", "1", "A".repeat(22)])
    expect(seal.unwrapEvent("session-1", text)).toBeUndefined();
});
