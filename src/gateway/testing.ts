/** A control server over a folder of resources, without the rest of the gateway: for tests. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type http from "node:http";
import os from "node:os";
import path from "node:path";
import type { SidecarConfig } from "../compile/bindings.ts";
import { compile } from "../compile/compile.ts";
import { systemClock } from "../platform/clock.ts";
import { plugins } from "../providers/registry.ts";
import { formatProblem } from "../resources/problem.ts";
import { ToolsError } from "./mcp-tools.ts";
import type { ChecksByLabel } from "./guard-counts.ts";
import type { ObjectUsage } from "../resources/usage.ts";
import { AppliedStore } from "../sources/applied/applied-store.ts";
import { openFolder } from "../sources/folder/folder-source.ts";
import type { LoadResult } from "../sources/load-result.ts";
import type { Source } from "../sources/source.ts";
import { createControl } from "./control.ts";
import { StatusTable } from "./status-sink.ts";

export class ControlWorld {
  readonly dir: string;
  readonly resources: string;
  readonly socket: string;
  readonly store: AppliedStore;
  readonly log: unknown[] = [];
  /** By id of the object. */
  readonly usage = new Map<string, ObjectUsage>();
  readonly guardCounts = new Map<string, ChecksByLabel>();
  /** Number of changes that were waited for. */
  settled = 0;
  #source: Source;
  #server: http.Server;
  readonly #objects = new StatusTable(systemClock);
  #problems: readonly string[] = [];
  #sidecars: ReadonlyMap<string, SidecarConfig> = new Map();

  private constructor(dir: string, source: Source) {
    this.dir = dir;
    this.resources = path.join(dir, "resources");
    this.socket = path.join(dir, "svc.sock");
    this.#source = source;
    this.store = new AppliedStore({
      dir: this.resources,
      refresh: () => this.#source.refresh(),
      inForce: async () => {
        this.settled += 1;
      },
      placeOf: (id) => this.#source.placeOf(id),
    });
    this.#server = createControl({
      status: () => ({
        ready: true,
        reason: undefined,
        policyVersion: "1",
        activeCalls: 0,
        objects: this.#objects.current,
        problems: this.#problems,
        envoys: [],
      }),
      tokenOf: (namespace, name) => `svcw_${namespace}_${name}`,
      sidecarOf: (namespace, name) => {
        const config = this.#sidecars.get(`${namespace}/${name}`);
        return (
          config && {
            specs: config.specs,
            secrets: {},
            gateway: { address: "127.0.0.1", port: 8000 },
            token: `svcw_${namespace}_${name}`,
            hosts: [],
            private: [],
          }
        );
      },
      toolsOf: (_namespace, name) =>
        Promise.reject(new ToolsError(404, `there is no Provider ${name} of type mcp`)),
      metrics: () => Promise.resolve("svc_metric 1\n"),
      objects: {
        statuses: () => this.#objects.current,
        resources: () => this.#source.current().resources,
        usage: () => Promise.resolve(this.usage),
        guardCounts: () => this.guardCounts,
      },
      store: this.store,
      log: { error: (fields: unknown) => void this.log.push(fields) },
    });
  }

  /** @param files of the resource folder: name to YAML */
  static async start(files: Readonly<Record<string, string>> = {}): Promise<ControlWorld> {
    const dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
    mkdirSync(path.join(dir, "resources"));
    for (const [name, text] of Object.entries(files))
      writeFileSync(path.join(dir, "resources", name), text);
    const source = await openFolder({
      dir: path.join(dir, "resources"),
      log: { warn: () => undefined },
    });
    const world = new ControlWorld(dir, source);
    source.onChange((load) => world.load(load));
    world.load(source.current());
    const server = world.#server;
    const { socket } = world;
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    return world;
  }

  load(load: LoadResult): void {
    const { statuses, sidecars } = compile(load, {
      env: {},
      now: Date.now(),
      tokenHashesOf: (namespace, name) => [`${namespace}/${name}`],
      guardEndpoint: undefined,
      mockEndpoint: { host: "127.0.0.1", port: 1, tls: false, basePath: "/v1" },
      service: (type) => plugins.get(type),
    });
    this.#objects.publish(statuses);
    this.#sidecars = sidecars;
    this.#problems = load.problems.map(formatProblem);
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await this.#source.close();
    rmSync(this.dir, { recursive: true, force: true });
  }
}
