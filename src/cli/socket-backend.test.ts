/** The socket backend with the control API behind it, over a real socket and a real folder. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ControlWorld } from "../gateway/testing.ts";
import type { Backend } from "./backend.ts";
import { CliError } from "./errors.ts";
import { socketBackend } from "./socket-backend.ts";

const MOCK =
  "apiVersion: svc.io/v1\nkind: ModelProvider\nmetadata: {name: mock}\nspec: {provider: mock}\n";
const KEY =
  "apiVersion: svc.io/v1\nkind: AccessKey\nmetadata: {name: k, namespace: team}\nspec: " +
  `{modelProvider: mock, keySHA256: ${"a".repeat(64)}}\n`;

const source = (text: string): { source: string; text: string }[] => [{ source: "a.yaml", text }];

describe("with a gateway", () => {
  let world: ControlWorld;
  let backend: Backend;

  beforeEach(async () => {
    world = await ControlWorld.start({
      "agent.yaml":
        'apiVersion: svc.io/v1\nkind: Agent\nmetadata: {name: hello}\nspec: {models: ["mock/*"]}\n',
    });
    backend = socketBackend({ stateDir: world.dir }, {});
  });

  afterEach(() => world.close());

  test("applies, lists, gets, patches and deletes", async () => {
    expect(await backend.apply(source(`${MOCK}---\n${KEY}`))).toMatchObject([
      { name: "mock", change: "created" },
      {
        name: "k",
        namespace: "team",
        change: "created",
        object: { status: { reason: "UnknownProvider" } },
      },
    ]);
    expect(
      (await backend.list("AccessKey", undefined)).map(({ metadata }) => metadata.name),
    ).toEqual(["k"]);
    expect(await backend.list("AccessKey", "default")).toEqual([]);
    expect(await backend.get("AccessKey", "team", "k")).toMatchObject({ spec: { revoked: false } });
    expect(await backend.get("AccessKey", "default", "k")).toBeUndefined();
    expect(
      await backend.patch("AccessKey", "team", "k", { spec: { revoked: true } }),
    ).toMatchObject({ change: "configured", object: { spec: { revoked: true } } });
    expect(await backend.delete("AccessKey", "team", "k")).toBe(true);
    expect(await backend.delete("AccessKey", "team", "k")).toBe(false);
  });

  test("a kind that only a cluster has is an error", async () => {
    const words = "svc up does not support the kind Session yet";
    await expect(backend.list("Session", undefined)).rejects.toThrow(words);
    await expect(backend.get("Session", "default", "a")).rejects.toThrow("the kind Session");
  });

  test("shows the Envoys of the gateway", async () => {
    expect(await backend.proxies()).toEqual({ gateways: [], sidecars: [] });
  });

  test("tells each thing that was refused, in a line", async () => {
    await expect(
      backend.apply(source(`${MOCK.replace("mock}}", "x")}---\nkind: [`)),
    ).rejects.toThrow(CliError);
    const error = await backend
      .apply(source(`${MOCK.replace("provider: mock", "provider: mok")}---\nkind: [`))
      .catch((reason: unknown) => reason as CliError);
    expect((error as CliError).message.split("\n")).toEqual([
      expect.stringMatching(
        /^a\.yaml:4: ModelProvider mock: spec\.provider: must be one of: .* \(did you mean mock\?\)$/,
      ),
      expect.stringMatching(/^a\.yaml:\d: .*the whole document was refused/),
    ]);
  });

  test("creates only what is not there", async () => {
    await backend.apply(source(MOCK), { create: true });
    await expect(backend.apply(source(MOCK), { create: true })).rejects.toThrow(
      "ModelProvider default/mock exists already",
    );
  });

  test("names with what means something in a path stay names", async () => {
    expect(await backend.get("Agent", "default", "../../Agent/default/hello")).toBeUndefined();
    expect(await backend.get("Agent", "default", "hello?x=1#y")).toBeUndefined();
    await expect(backend.delete("Agent", "default", "../x")).rejects.toThrow(
      /not a valid object name/,
    );
  });

  test("status, token and metrics", async () => {
    expect((await backend.status()).objects).toMatchObject([{ name: "hello" }]);
    expect(await backend.token("default", "hello")).toBe("svcw_default_hello");
    await expect(backend.token("default", "none")).rejects.toThrow(
      "no Agent none in namespace default",
    );
    expect(await backend.metrics()).toBe("svc_metric 1\n");
  });
});

describe("without a gateway that understands", () => {
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

  const none = (where: string): string =>
    `No svc up runs with the state folder ${where}. Start one, or name its folder with ` +
    "--state-dir, or a cluster with --context.";

  test("nothing there", async () => {
    await expect(socketBackend({ stateDir: dir }, {}).status()).rejects.toThrow(none(dir));
    await expect(
      socketBackend({}, { SVC_STATE_DIR: dir }).list("Agent", undefined),
    ).rejects.toThrow(none(dir));
    await expect(socketBackend({ stateDir: path.join(dir, "none") }, {}).apply([])).rejects.toThrow(
      none(path.join(dir, "none")),
    );
  });

  test("a socket that nobody serves, as after a kill", async () => {
    writeFileSync(path.join(dir, "svc.sock"), "");
    await expect(socketBackend({ stateDir: dir }, {}).metrics()).rejects.toThrow(none(dir));
  });

  test.each([
    [
      "no JSON",
      200,
      "<html>",
      "the gateway answered 200, and not in JSON: does it have another version?",
    ],
    ["a failure without words", 500, "{}", "the gateway refused"],
  ])("%s", async (_name, status, text, words) => {
    const started = http.createServer((request, response) => {
      request.resume();
      response.writeHead(status).end(text);
    });
    server = started;
    await new Promise<void>((resolve) => started.listen(path.join(dir, "svc.sock"), resolve));
    await expect(socketBackend({ stateDir: dir }, {}).status()).rejects.toThrow(words);
  });

  test("a connection that ends without an answer", async () => {
    const started = http.createServer((request) => request.socket.destroy());
    server = started;
    await new Promise<void>((resolve) => started.listen(path.join(dir, "svc.sock"), resolve));
    await expect(socketBackend({ stateDir: dir }, {}).status()).rejects.toThrow(/did not answer: /);
  });
});
