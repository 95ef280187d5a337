import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { unixRequest } from "./unix-http.ts";

let dir: string;
let server: http.Server | undefined;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
});

afterEach(() => {
  server?.close();
  server?.closeAllConnections();
  server = undefined;
  rmSync(dir, { recursive: true });
});

async function serve(listener: http.RequestListener): Promise<string> {
  const socket = path.join(dir, "s.sock");
  const started = http.createServer(listener);
  server = started;
  await new Promise<void>((resolve) => started.listen(socket, resolve));
  return socket;
}

test("gives status and body, whole though it comes in parts", async () => {
  const socket = await serve((request, response) => {
    response.writeHead(418);
    response.write(`${request.method ?? ""} `);
    response.write(Buffer.from("é").subarray(0, 1));
    response.end(Buffer.concat([Buffer.from("é").subarray(1), Buffer.from(request.url ?? "")]));
  });
  expect(await unixRequest(socket, "/a?b", "POST")).toEqual({ status: 418, body: "POST é/a?b" });
  expect((await unixRequest(socket, "/")).body).toBe("GET é/");
});

test("fails where nobody listens", async () => {
  await expect(unixRequest(path.join(dir, "none.sock"), "/")).rejects.toMatchObject({
    code: "ENOENT",
  });
});

test("fails where the answer breaks off", async () => {
  const before = await serve((_request, response) => response.destroy());
  await expect(unixRequest(before, "/")).rejects.toThrow();
});

test("fails where the answer breaks off in the middle", async () => {
  const socket = await serve((_request, response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("part", () => response.destroy());
  });
  await expect(unixRequest(socket, "/")).rejects.toThrow();
});
