/** The command line with fake dependencies, for tests. */
import { createHash } from "node:crypto";
import type { GatewayStatus } from "../gateway/status.ts";
import { parseDocuments } from "../resources/parse.ts";
import { formatProblem } from "../resources/problem.ts";
import { KINDS, type ResourceKind } from "../resources/kinds.ts";
import { mergePatch } from "../sources/applied/merge-patch.ts";
import type {
  ApplyResult,
  Backend,
  ManifestText,
  ObjectView,
  BackendTarget,
  ToolsView,
} from "./backend.ts";
import type { ClusterAccess } from "./cluster-access.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";
import type { ProxyReport } from "./proxies.ts";
import { run } from "./run.ts";

/** 2026-06-15T12:00:00Z */
export const NOW = Date.UTC(2026, 5, 15, 12);

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Objects in memory. */
export class FakeBackend implements Backend {
  readonly objects = new Map<string, ObjectView>();
  /** Operations, in order. */
  readonly calls: string[] = [];
  /** All received texts. */
  readonly received: string[] = [];
  targets: BackendTarget[] = [];
  metricsText = "";
  toolsView: ToolsView | undefined;
  gateway: GatewayStatus = {
    ready: true,
    reason: undefined,
    policyVersion: "1",
    activeCalls: 0,
    objects: [],
    problems: [],
    envoys: [],
  };
  proxyReport: ProxyReport = { gateways: [], sidecars: [] };
  /** Status of applied objects. */
  statusOf: (kind: ResourceKind) => ObjectView["status"] = () => ({
    ready: true,
    reason: "Ready",
    message: "",
  });

  add(
    kind: ResourceKind,
    name: string,
    more: Partial<ObjectView> = {},
    namespace = "default",
  ): void {
    this.objects.set(`${kind}/${namespace}/${name}`, {
      apiVersion: KINDS[kind].apiVersion,
      kind,
      metadata: { namespace, name, resourceVersion: "v1" },
      status: { ready: true, reason: "Ready", message: "" },
      ...more,
    });
  }

  async apply(
    manifests: readonly ManifestText[],
    { create = false }: { readonly create?: boolean } = {},
  ): Promise<readonly ApplyResult[]> {
    this.calls.push(create ? "create" : "apply");
    this.received.push(...manifests.map(({ text }) => text));
    const parsed = manifests.map(({ source, text }) => parseDocuments(text, source));
    const problems = parsed.flatMap((result) => result.problems);
    if (problems.length > 0) throw new CliError(problems.map(formatProblem).join("\n"));
    return parsed
      .flatMap((result) => result.resources)
      .map((resource) => {
        const { kind, namespace, name } = resource;
        const id = `${kind}/${namespace}/${name}`;
        const change = this.objects.has(id) ? "configured" : "created";
        if (create && change === "configured")
          throw new CliError(`${kind} ${namespace}/${name} exists already`);
        this.add(
          kind,
          name,
          { ...("spec" in resource ? { spec: resource.spec } : {}), status: this.statusOf(kind) },
          namespace,
        );
        return { kind, namespace, name, change, object: this.objects.get(id) };
      });
  }

  async list(kind: ResourceKind, namespace: string | undefined): Promise<readonly ObjectView[]> {
    this.calls.push(`list ${kind} ${namespace ?? "*"}`);
    return [...this.objects.values()].filter(
      (object) =>
        object.kind === kind &&
        (namespace === undefined || object.metadata.namespace === namespace),
    );
  }

  async get(kind: ResourceKind, namespace: string, name: string): Promise<ObjectView | undefined> {
    return this.objects.get(`${kind}/${namespace}/${name}`);
  }

  async patch(
    kind: ResourceKind,
    namespace: string,
    name: string,
    patch: Readonly<Record<string, unknown>>,
  ): Promise<ApplyResult> {
    this.calls.push(`patch ${kind}/${namespace}/${name}`);
    this.received.push(JSON.stringify(patch));
    const id = `${kind}/${namespace}/${name}`;
    const before = this.objects.get(id);
    if (before === undefined) throw new CliError(`there is no ${id}`);
    const object = mergePatch(before, patch) as ObjectView;
    this.objects.set(id, object);
    return {
      kind,
      namespace,
      name,
      change: JSON.stringify(object) === JSON.stringify(before) ? "unchanged" : "configured",
      object,
    };
  }

  async delete(kind: ResourceKind, namespace: string, name: string): Promise<boolean> {
    this.calls.push(`delete ${kind}/${namespace}/${name}`);
    return this.objects.delete(`${kind}/${namespace}/${name}`);
  }

  async tools(namespace: string, provider: string): Promise<ToolsView> {
    this.calls.push(`tools ${namespace}/${provider}`);
    if (this.toolsView === undefined) throw new CliError(`there is no Provider ${provider}`);
    return this.toolsView;
  }

  async metrics(): Promise<string> {
    return this.metricsText;
  }

  async token(namespace: string, agent: string): Promise<string> {
    if (!this.objects.has(`Agent/${namespace}/${agent}`))
      throw new CliError(`no Agent ${agent} in namespace ${namespace}`);
    return `svcw_${namespace}_${agent}`;
  }

  async status(): Promise<GatewayStatus> {
    return this.gateway;
  }

  async proxies(): Promise<ProxyReport> {
    return this.proxyReport;
  }
}

export class CliWorld {
  readonly backend = new FakeBackend();
  env: NodeJS.ProcessEnv = {};
  stdin = "";
  /** Input at a prompt for a secret; undefined if there is no terminal. */
  typed: string | undefined;
  readonly asked: string[] = [];
  fetch: typeof fetch = () => Promise.reject(new TypeError("fetch failed"));
  /** Programs that were run, with their arguments. */
  readonly programs: string[][] = [];
  programCode: number | undefined = 0;
  cluster: ClusterAccess = {
    copyChains: () => Promise.resolve([]),
    check: () => Promise.resolve([]),
  };
  /** Time that commands have waited, in milliseconds. */
  slept = 0;
  /** Runs meanwhile. */
  onSleep: () => Promise<void> = () => Promise.resolve();
  #seed = 0;

  /** Returns the same bytes each time, so that keys are predictable. */
  random(bytes: number): Uint8Array {
    return createHash("sha256")
      .update(String(this.#seed++))
      .digest()
      .subarray(0, bytes);
  }

  async run(...args: string[]): Promise<Ran> {
    const stdout: string[] = [];
    const stderr: string[] = [];
    const { typed } = this;
    const context: Omit<Context, "setExitCode"> = {
      root: "/nowhere",
      version: "1.2.3",
      env: this.env,
      stdout: (text) => void stdout.push(text),
      stderr: (text) => void stderr.push(text),
      stdin: () => Promise.resolve(this.stdin),
      askSecret:
        typed === undefined
          ? undefined
          : (question) => {
              this.asked.push(question);
              return Promise.resolve(typed);
            },
      now: () => NOW + this.slept,
      sleep: (ms) => {
        this.slept += ms;
        return this.onSleep();
      },
      random: (bytes) => this.random(bytes),
      fetch: (...request) => this.fetch(...request),
      runProgram: (file, args) => {
        this.programs.push([file, ...args]);
        return Promise.resolve(this.programCode);
      },
      cluster: () => Promise.resolve(this.cluster),
      backend: (target) => {
        this.backend.targets.push(target);
        return Promise.resolve(this.backend);
      },
    };
    const code = await run(args, context);
    return { code, stdout: stdout.join(""), stderr: stderr.join("") };
  }
}
