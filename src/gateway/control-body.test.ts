import type http from "node:http";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { readBody } from "./control-body.ts";

const request = (...parts: string[]): http.IncomingMessage =>
  Readable.from(parts.map((part) => Buffer.from(part))) as http.IncomingMessage;

test("JSON, however it is cut", async () => {
  expect(await readBody(request('{"a":', '"b"}'), 9)).toEqual({ a: "b" });
});

test("one that is too long is read to its end, and refused", async () => {
  const long = request('{"a":', '"b"}', "    ");
  await expect(readBody(long, 8)).rejects.toMatchObject({
    status: 413,
    message: "the body is longer than 8 bytes",
  });
  expect(long.readableEnded).toBe(true);
});

test("what is no JSON is not quoted", async () => {
  await expect(readBody(request("sk-secret"))).rejects.toMatchObject({
    status: 400,
    message: "the body is not JSON",
  });
});
