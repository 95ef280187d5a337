import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { KubeClient } from "./client.ts";
import { ApiError, type ApiConnection, isConflict, isNotFound } from "./connection.ts";
import { CORE } from "./objects.ts";
import { FakeApiServer } from "./testing.ts";
import { eventually } from "../../e2e/support/wait.ts";

const SECRETS = "/api/v1/namespaces/a/secrets";

let server: FakeApiServer;
let connection: ApiConnection;

beforeEach(async () => {
  server = await FakeApiServer.start();
  connection = server.connect();
});

afterEach(async () => {
  connection.close();
  await server.stop();
});

async function errorOf(request: Promise<unknown>): Promise<ApiError> {
  const error: unknown = await request.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ApiError);
  return error as ApiError;
}

test("requests share one connection", async () => {
  for (let i = 0; i < 5; i += 1) await connection.request(SECRETS);
  expect(server.connections).toBe(1);
});

describe("errors", () => {
  test("have the server's status, reason and words", async () => {
    const error = await errorOf(connection.request(`${SECRETS}/absent`));
    expect(error).toMatchObject({ status: 404, reason: "NotFound", message: "fake: NotFound" });
    expect(isNotFound(error)).toBe(true);
  });

  test("of an answer that is not JSON have its status", async () => {
    server.answer = () => ({ status: 503 });
    const error = await errorOf(connection.request(SECRETS));
    expect(error.message).toBe("the API server answered with status 503");
  });

  test("have the delay that the server asks for", async () => {
    server.answer = () => ({ status: 429, headers: { "retry-after": "3" } });
    expect((await errorOf(connection.request(SECRETS))).retryAfterMs).toBe(3_000);
    server.answer = () => ({ status: 429, headers: { "retry-after": "soon" } });
    expect((await errorOf(connection.request(SECRETS))).retryAfterMs).toBeUndefined();
  });

  test("of a broken connection have the status 0", async () => {
    server.answer = () => "hang";
    const request = errorOf(connection.request(SECRETS));
    await eventually(() => expect(server.requests).toHaveLength(1));
    server.cut();
    expect((await request).status).toBe(0);
  });

  test("of a request that was aborted have the status 0", async () => {
    server.answer = () => "hang";
    const abort = new AbortController();
    const request = errorOf(connection.request(SECRETS, { signal: abort.signal }));
    await eventually(() => expect(server.requests).toHaveLength(1));
    abort.abort();
    expect((await request).status).toBe(0);
  });
});

describe("lines", () => {
  async function linesOf(onLine: (line: string) => void): Promise<void> {
    const query = { watch: "true", resourceVersion: "0" };
    await connection.lines(SECRETS, { query }, 1_000, onLine);
  }

  test("are whole, however long, in any script", async () => {
    const value = "ä€😀".repeat(300_000);
    server.put(`${SECRETS}/long`, { kind: "Secret", metadata: { name: "long" }, value });
    server.put(`${SECRETS}/short`, { kind: "Secret", metadata: { name: "short" }, value: "1" });
    const values: unknown[] = [];
    const done = linesOf((line) => {
      values.push((JSON.parse(line) as { object: { value: unknown } }).object.value);
      if (values.length === 2) server.endWatches();
    });
    await done;
    expect(values).toEqual([value, "1"]);
  });

  test("end with the error of their reader, unchanged", async () => {
    server.put(`${SECRETS}/one`, { kind: "Secret", metadata: { name: "one" } });
    const defect = new TypeError("a defect");
    await expect(
      linesOf(() => {
        throw defect;
      }),
    ).rejects.toBe(defect);
    await eventually(() => expect(server.watches).toBe(0));
  });

  test("of a refused request are its error", async () => {
    server.answer = () => ({ status: 403, body: { message: "no" } });
    expect(await errorOf(linesOf(() => undefined))).toMatchObject({ status: 403, message: "no" });
  });
});

describe("objects", () => {
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: "a", name: "one" },
    data: { token: "QQ==" },
  };

  test("are created once, and replaced only in the version that was read", async () => {
    const client = new KubeClient(connection, "test");
    const made = await client.create(CORE.secret, secret);
    const again = await errorOf(client.create(CORE.secret, secret));
    expect(isConflict(again)).toBe(true);
    await client.replace(CORE.secret, { ...made, data: { token: "Qg==" } });
    expect(isConflict(await errorOf(client.replace(CORE.secret, made)))).toBe(true);
  });

  test("are deleted by their UID, and one that is gone is no error", async () => {
    const client = new KubeClient(connection, "test");
    const { metadata } = await client.create(CORE.secret, secret);
    const name = { namespace: "a", name: "one" };
    expect(isConflict(await errorOf(client.delete(CORE.secret, name, "another")))).toBe(true);
    await client.delete(CORE.secret, name, metadata.uid);
    await client.delete(CORE.secret, name, metadata.uid);
    expect(await client.get(CORE.secret, name)).toBeUndefined();
  });
});
