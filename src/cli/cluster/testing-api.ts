/**
 * A Kubernetes API server in memory, for tests: objects of any kind, with server-side apply and
 * merge patches as far as our programs need them, and answers of tests for all other paths.
 */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { collectionPath, type KubeKind, type KubeObject } from "../../kubernetes/objects.ts";

export interface FakeRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: unknown;
}

export interface FakeAnswer {
  readonly status: number;
  /** Text, or a value that is sent as JSON. */
  readonly body: unknown;
}

/** Returns undefined to leave the answer to the server. */
type Handler = (request: FakeRequest) => FakeAnswer | undefined;

type Mutable = { metadata: Record<string, unknown> } & Record<string, unknown>;

const OBJECT_PATH =
  /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?(?:\/(status))?$/;

export class ScriptedApiServer {
  /** Requests in order. */
  readonly requests: FakeRequest[] = [];
  readonly #server: http.Server;
  readonly #folder = mkdtempSync(path.join(os.tmpdir(), "svc-test-api-"));
  /** By `<root> <plural>` and then `<namespace>/<name>`. */
  readonly #objects = new Map<string, Map<string, KubeObject>>();
  readonly #handlers: Handler[] = [];
  #version = 0;

  private constructor() {
    this.#server = http.createServer((request, response) => void this.#serve(request, response));
  }

  static async start(): Promise<ScriptedApiServer> {
    const server = new ScriptedApiServer();
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Writes a kubeconfig with one context. @returns its file */
  kubeconfig(context = "test"): string {
    const file = path.join(this.#folder, "kubeconfig");
    const { port } = this.#server.address() as AddressInfo;
    const cluster = { server: `http://127.0.0.1:${port}`, "insecure-skip-tls-verify": true };
    const config = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "test", cluster }],
      users: [{ name: "test", user: {} }],
      contexts: [{ name: context, context: { cluster: "test", user: "test" } }],
      "current-context": context,
    };
    writeFileSync(file, JSON.stringify(config));
    return file;
  }

  /** Answers requests before the server does; the newest handler is asked first. */
  handle(handler: Handler): void {
    this.#handlers.unshift(handler);
  }

  /** Answers GET of one path. */
  answer(wanted: string, body: unknown, status = 200): void {
    this.handle(({ method, path: asked }) =>
      method === "GET" && asked === wanted ? { status, body } : undefined,
    );
  }

  /** Puts an object there, as another program would. */
  put(kind: KubeKind, object: object): KubeObject {
    const { metadata, ...rest } = object as Mutable;
    const { apiVersion } = kind;
    const whole = { apiVersion, kind: kind.kind, ...rest, metadata } as unknown as KubeObject;
    const known = this.#known(collectionPath(kind));
    return this.#store(known, keyOf(whole.metadata), whole);
  }

  find(kind: KubeKind, namespace: string, name: string): KubeObject | undefined {
    return this.#known(collectionPath(kind)).get(`${namespace}/${name}`);
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const url = new URL(request.url ?? "", "http://api");
    const text = Buffer.concat(parts).toString("utf8");
    const asked: FakeRequest = {
      method: request.method ?? "",
      path: decodeURIComponent(url.pathname),
      query: url.searchParams,
      body: text === "" ? undefined : JSON.parse(text),
    };
    this.requests.push(asked);
    const contentType = request.headers["content-type"] ?? "";
    const { status, body } =
      this.#handlers.map((handler) => handler(asked)).find((answer) => answer !== undefined) ??
      this.#answer(asked, contentType);
    response.writeHead(status);
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  }

  #answer({ method, path: asked, query, body }: FakeRequest, contentType: string): FakeAnswer {
    const match = OBJECT_PATH.exec(asked);
    if (match === null) return refusal(404, "NotFound", "the server could not find it");
    const [, root = "", namespace = "", plural = "", name, subresource] = match;
    const known = this.#known(`${root}/${plural}`);
    const key = `${namespace}/${name ?? ""}`;
    const before = known.get(key);
    const keep = (object: KubeObject, status: number): FakeAnswer => {
      const isDry = query.get("dryRun") === "All";
      return { status, body: isDry ? object : this.#store(known, keyOf(object.metadata), object) };
    };
    switch (method) {
      case "GET":
        if (name === undefined) return listOf(known, namespace, query);
        return before === undefined
          ? refusal(404, "NotFound", `${plural} "${name}" not found`)
          : { status: 200, body: before };
      case "POST": {
        const object = body as KubeObject;
        return known.has(keyOf(object.metadata))
          ? refusal(409, "AlreadyExists", `${plural} "${object.metadata.name}" already exists`)
          : keep(object, 201);
      }
      case "PATCH": {
        if (contentType !== "application/merge-patch+json") {
          const applied = body as KubeObject;
          const status = subresource === undefined ? before?.["status"] : applied["status"];
          const fields = subresource === undefined ? applied : before;
          return keep({ ...(fields ?? applied), ...(status === undefined ? {} : { status }) }, 200);
        }
        if (before === undefined) return refusal(404, "NotFound", `${plural} not found`);
        const wanted = (body as Partial<KubeObject>).metadata?.resourceVersion;
        return wanted !== undefined && wanted !== before.metadata.resourceVersion
          ? refusal(409, "Conflict", "the object has been modified")
          : keep(merged(before, body) as KubeObject, 200);
      }
      case "DELETE":
        if (before === undefined) return refusal(404, "NotFound", `${plural} not found`);
        known.delete(key);
        return { status: 200, body: { kind: "Status", status: "Success" } };
      default:
        return refusal(405, "MethodNotAllowed", method);
    }
  }

  /** The generation counts changes of everything but metadata and status, as with a CRD. */
  #store(known: Map<string, KubeObject>, key: string, object: KubeObject): KubeObject {
    const before = known.get(key);
    const same = before !== undefined && isSame(before, object, ["resourceVersion", "generation"]);
    if (same) return before;
    const generation =
      before === undefined
        ? 1
        : (before.metadata.generation ?? 1) + (contentOf(before) === contentOf(object) ? 0 : 1);
    const stored: KubeObject = {
      ...object,
      metadata: {
        ...object.metadata,
        uid: before?.metadata.uid ?? object.metadata.uid ?? randomUUID(),
        generation,
        resourceVersion: String(++this.#version),
      },
    };
    known.set(key, stored);
    return stored;
  }

  #known(collection: string): Map<string, KubeObject> {
    let known = this.#objects.get(collection);
    if (known === undefined) this.#objects.set(collection, (known = new Map()));
    return known;
  }
}

function keyOf({ namespace = "", name }: { readonly namespace?: string; readonly name: string }) {
  return `${namespace}/${name}`;
}

function contentOf({ metadata: _metadata, status: _status, ...content }: KubeObject): string {
  return JSON.stringify(content);
}

function isSame(before: KubeObject, after: KubeObject, ignored: readonly string[]): boolean {
  const plain = ({ metadata, ...rest }: KubeObject): string =>
    JSON.stringify([
      rest,
      Object.entries(metadata)
        .filter(([name, value]) => !ignored.includes(name) && name !== "uid" && value !== undefined)
        .toSorted(([a], [b]) => (a < b ? -1 : 1)),
    ]);
  return plain(before) === plain(after);
}

function listOf(
  known: ReadonlyMap<string, KubeObject>,
  namespace: string,
  query: URLSearchParams,
): FakeAnswer {
  const wanted = (query.get("labelSelector") ?? "").split(",").filter((part) => part !== "");
  const [, name] = /^metadata\.name=(.+)$/.exec(query.get("fieldSelector") ?? "") ?? [];
  const items = [...known.values()].filter(
    ({ metadata }) =>
      (namespace === "" || metadata.namespace === namespace) &&
      (name === undefined || metadata.name === name) &&
      wanted.every((part) => {
        const [label = "", value] = part.split("=");
        return metadata.labels?.[label] === value;
      }),
  );
  return { status: 200, body: { kind: "List", metadata: { resourceVersion: "1" }, items } };
}

/** JSON merge patch (RFC 7396). */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> = {
    ...(typeof target === "object" && target !== null ? target : {}),
  };
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = merged(result[name], value);
  }
  return result;
}

function refusal(code: number, reason: string, message: string): FakeAnswer {
  return { status: code, body: { kind: "Status", status: "Failure", code, reason, message } };
}
