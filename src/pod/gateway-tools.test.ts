import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { askForTools } from "./gateway-tools.ts";

let folder: string;
let socket: string;
let server: http.Server;
let asked: (string | undefined)[];

beforeEach(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), "svc-tools-"));
  socket = path.join(folder, "svc.sock");
  asked = [];
  server = http.createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.writeHead(404).end('{"error":"no"}');
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
});

afterEach(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

test("asks the control API, and passes its answer on as it is", async () => {
  expect(await askForTools(socket, ["team", "tracker"])).toEqual({
    status: 404,
    body: '{"error":"no"}',
  });
  expect(asked).toEqual(["GET /providers/team/tracker/tools"]);
});

test("a name cannot lead to another path", async () => {
  await askForTools(socket, ["team", "../agents/team/hello/token?"]);
  expect(asked).toEqual(["GET /providers/team/..%2Fagents%2Fteam%2Fhello%2Ftoken%3F/tools"]);
});

test.each([[[]], [["team"]], [["team", "tracker", "more"]]])("refuses %j", async (args) => {
  await expect(askForTools(socket, args)).rejects.toThrow("name a namespace and a Provider");
  expect(asked).toEqual([]);
});

test("a gateway that does not run is named", async () => {
  await expect(askForTools(path.join(folder, "none.sock"), ["a", "b"])).rejects.toThrow(
    "the gateway service does not answer",
  );
});
