/**
 * Test helper: a small API server in memory. It lists, watches, and keeps versions as the real one
 * does; server-side apply replaces the given fields.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";
import { KubeConfig } from "@kubernetes/client-node/dist/config.js";
import { Connection } from "./connection.ts";
import type { KubeObject } from "./objects.ts";

interface Address {
  /** API version and plural. */
  readonly collection: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly isStatus: boolean;
}

interface Change {
  readonly version: number;
  readonly collection: string;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: KubeObject;
}

interface Watch {
  readonly address: Address;
  readonly query: URLSearchParams;
  readonly response: http.ServerResponse;
}

interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: unknown;
}

/** An answer instead of the server's own. */
export interface OtherAnswer {
  readonly status: number;
  readonly headers?: http.OutgoingHttpHeaders;
  readonly body?: unknown;
}

export class FakeApiServer {
  readonly requests: ReceivedRequest[] = [];
  /** Returns an answer instead of the server's own; "hang" for none. */
  answer: (request: ReceivedRequest) => OtherAnswer | "hang" | undefined = () => undefined;
  /** Number of TCP connections that were opened. */
  connections = 0;
  readonly #objects = new Map<string, KubeObject>();
  readonly #watches = new Set<Watch>();
  readonly #server: http.Server;
  #changes: Change[] = [];
  #version = 100;
  /** A watch from before this version is refused. */
  #oldest = 0;

  private constructor() {
    this.#server = http.createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) =>
        send(response, 500, { message: String(error) }),
      );
    });
    this.#server.on("connection", () => (this.connections += 1));
  }

  static async start(): Promise<FakeApiServer> {
    const fake = new FakeApiServer();
    await new Promise<void>((resolve) => fake.#server.listen(0, "127.0.0.1", resolve));
    return fake;
  }

  connect(): Connection {
    const { port } = this.#server.address() as AddressInfo;
    const config = new KubeConfig();
    config.loadFromOptions({
      clusters: [{ name: "fake", server: `http://127.0.0.1:${port}`, skipTLSVerify: true }],
      users: [{ name: "nobody" }],
      contexts: [{ name: "fake", cluster: "fake", user: "nobody", namespace: "svc-system" }],
      currentContext: "fake",
    });
    return new Connection(config);
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Breaks all connections. */
  cut(): void {
    this.#server.closeAllConnections();
  }

  /** Number of watches that are open. */
  get watches(): number {
    return this.#watches.size;
  }

  /** Requests that change something. */
  get writes(): readonly ReceivedRequest[] {
    return this.requests.filter(({ method }) => method !== "GET");
  }

  /** Forgets the changes so far, as the real server does after some minutes. */
  forget(): void {
    this.#oldest = this.#version;
  }

  /** Ends all watches, as the real server does after their time. */
  endWatches(): void {
    for (const { response } of this.#watches) response.end();
  }

  /** Sends the newest version to all watches. */
  bookmark(): void {
    this.#version += 1;
    const metadata = { resourceVersion: String(this.#version) };
    for (const { response } of this.#watches) write(response, "BOOKMARK", { metadata });
  }

  /** Returns an object. @param path of the API, e.g. `/api/v1/namespaces/a/secrets/b` */
  get(path: string): KubeObject | undefined {
    return this.#objects.get(keyOf(parsePath(path)));
  }

  /** Stores an object, and tells the watches. @param path of the API */
  put(path: string, object: object): KubeObject {
    return this.#store(parsePath(path), object as KubeObject);
  }

  /** @param path of the API */
  remove(path: string): void {
    const address = parsePath(path);
    const found = this.#objects.get(keyOf(address));
    if (found === undefined) return;
    this.#objects.delete(keyOf(address));
    this.#version += 1;
    const metadata = { ...found.metadata, resourceVersion: String(this.#version) };
    this.#tell("DELETED", address, { ...found, metadata });
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { method = "GET", url = "/" } = request;
    const { pathname, searchParams: query } = new URL(url, "http://fake");
    const text = (await request.toArray()).join("");
    const body: unknown = text === "" ? undefined : JSON.parse(text);
    const received = { method, path: pathname, query, body };
    this.requests.push(received);
    const other = this.answer(received);
    if (other === "hang") return;
    if (other !== undefined) return send(response, other.status, other.body, other.headers);
    const address = parsePath(pathname);
    if (query.get("watch") === "true") return this.#watch({ address, query, response });
    if (method === "GET" && address.name === undefined) return this.#list(address, query, response);
    const [status, answer] = this.#one(received, address);
    send(response, status, answer);
  }

  /** Serves a request about one object. */
  #one({ method, body, query }: ReceivedRequest, at: Address): readonly [number, unknown] {
    const given = body as KubeObject;
    const { name = given.metadata.name } = at;
    const address = { ...at, name };
    const found = this.#objects.get(keyOf(address));
    const isApply = method === "PATCH" && query.get("force") === "true";
    if (method === "POST" && found !== undefined) return [409, status("AlreadyExists")];
    if (method !== "POST" && found === undefined && !(isApply && !at.isStatus))
      return [404, status("NotFound")];
    const wanted = method === "DELETE" ? undefined : given?.metadata?.resourceVersion;
    if (wanted !== undefined && wanted !== found?.metadata.resourceVersion)
      return [409, status("Conflict")];
    if (method === "GET") return [200, found];
    if (method === "DELETE") {
      const { uid } = (body as { preconditions?: { uid?: string } }).preconditions ?? {};
      if (uid !== undefined && uid !== found?.metadata.uid) return [409, status("Conflict")];
      this.remove(pathOf(address));
      return [200, status("Success")];
    }
    if (at.isStatus)
      return [200, this.#store(address, { ...found, status: given["status"] } as KubeObject)];
    if (method === "POST" || method === "PUT") return [200, this.#store(address, given)];
    const metadata = { ...found?.metadata, ...given.metadata };
    return [200, this.#store(address, { ...found, ...given, metadata })];
  }

  #list(address: Address, query: URLSearchParams, response: http.ServerResponse): void {
    const all = [...this.#objects]
      .filter(([key, object]) => isIn(address, key) && isSelected(object, query))
      .map(([, object]) => object);
    const from = Number(query.get("continue") ?? 0);
    const limit = Number(query.get("limit") ?? all.length);
    const next = from + limit < all.length ? String(from + limit) : undefined;
    send(response, 200, {
      metadata: { resourceVersion: String(this.#version), continue: next },
      // As in the real one, those of a core kind without what the list's own kind says.
      items: all.slice(from, from + limit).map((object) => {
        const { apiVersion, kind: _kind, ...item } = object;
        return apiVersion.includes(".") ? object : item;
      }),
    });
  }

  #watch(watch: Watch): void {
    const { query, response } = watch;
    const from = Number(query.get("resourceVersion"));
    response.writeHead(200, { "content-type": "application/json" });
    response.flushHeaders();
    if (from < this.#oldest) {
      write(response, "ERROR", { ...status("Expired"), code: 410 });
      return void response.end();
    }
    this.#watches.add(watch);
    response.on("close", () => this.#watches.delete(watch));
    for (const change of this.#changes) if (change.version > from) deliver(watch, change);
  }

  #store(address: Address, given: KubeObject): KubeObject {
    const key = keyOf(address);
    const before = this.#objects.get(key);
    const { resourceVersion: _version, ...rest } = given.metadata;
    const { generation = 0 } = before?.metadata ?? {};
    const isSpecSame = JSON.stringify(before?.["spec"]) === JSON.stringify(given["spec"]);
    const object: KubeObject = {
      ...given,
      metadata: {
        uid: before?.metadata.uid ?? `uid-${this.#version}`,
        ...rest,
        name: address.name ?? given.metadata.name,
        ...(address.namespace === undefined ? {} : { namespace: address.namespace }),
        generation: before !== undefined && isSpecSame ? generation : generation + 1,
      },
    };
    const metadata = { ...object.metadata, resourceVersion: before?.metadata.resourceVersion };
    if (
      before !== undefined &&
      JSON.stringify({ ...object, metadata: sorted(metadata) }) ===
        JSON.stringify({ ...before, metadata: sorted(before.metadata) })
    )
      return before;
    this.#version += 1;
    const stored = {
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(this.#version) },
    };
    this.#objects.set(key, stored);
    this.#tell(before === undefined ? "ADDED" : "MODIFIED", address, stored);
    return stored;
  }

  #tell(type: Change["type"], { collection }: Address, object: KubeObject): void {
    const change = { version: this.#version, collection, type, object };
    this.#changes.push(change);
    for (const watch of this.#watches) deliver(watch, change);
  }
}

function deliver({ address, query, response }: Watch, change: Change): void {
  const { collection, object, type } = change;
  const { namespace } = object.metadata;
  if (collection !== address.collection || !isSelected(object, query)) return;
  if (address.namespace === undefined || address.namespace === namespace)
    write(response, type, object);
}

function write(response: http.ServerResponse, type: string, object: object): void {
  response.write(`${JSON.stringify({ type, object })}\n`);
}

function send(
  response: http.ServerResponse,
  code: number,
  body: unknown,
  headers: http.OutgoingHttpHeaders = {},
): void {
  response.writeHead(code, { "content-type": "application/json", ...headers });
  response.end(body === undefined ? "" : JSON.stringify(body));
}

function status(reason: string): Readonly<Record<string, unknown>> {
  return { kind: "Status", apiVersion: "v1", reason, message: `fake: ${reason}` };
}

function sorted(value: object): object {
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** `/api/v1/...` or `/apis/<group>/<version>/...` */
function parsePath(path: string): Address {
  const [, api = "", ...rest] = path.split("/");
  const version = rest.splice(0, api === "api" ? 1 : 2).join("/");
  const namespace = rest[0] === "namespaces" ? rest.splice(0, 2)[1] : undefined;
  const [plural = "", name, sub] = rest;
  return { collection: `${version}/${plural}`, namespace, name, isStatus: sub === "status" };
}

function keyOf({ collection, namespace = "", name = "" }: Address): string {
  return `${collection} ${namespace}/${name}`;
}

function pathOf({ collection, namespace, name = "" }: Address): string {
  const parts = collection.split("/");
  const root = parts.length === 2 ? "/api/" : "/apis/";
  const version = parts.slice(0, -1).join("/");
  const scope = namespace === undefined ? "" : `/namespaces/${namespace}`;
  return `${root}${version}${scope}/${parts.at(-1) ?? ""}/${name}`;
}

function isIn({ collection, namespace }: Address, key: string): boolean {
  return key.startsWith(`${collection} ${namespace === undefined ? "" : `${namespace}/`}`);
}

/** `metadata.name=x` of fields; `a` and `a=b` of labels, joined by commas. */
function isSelected({ metadata }: KubeObject, query: URLSearchParams): boolean {
  const field = query.get("fieldSelector")?.match(/^metadata\.name=(.*)$/)?.[1];
  if (field !== undefined && field !== metadata.name) return false;
  const labels = (query.get("labelSelector") ?? "").split(",").filter((part) => part !== "");
  return labels.every((part) => {
    const [key = "", value] = part.split("=");
    const found = metadata.labels?.[key];
    return found !== undefined && (value === undefined || found === value);
  });
}
