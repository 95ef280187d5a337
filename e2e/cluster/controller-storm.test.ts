/**
 * Random edits while the controller is killed at random: the cluster ends as a controller that
 * begins from nothing would make it, and no pod was replaced needlessly. SVC_STORM_SEED repeats a
 * run.
 */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { isNotFound } from "../../src/kubernetes/connection.ts";
import { CORE } from "../../src/kubernetes/objects.ts";
import { kubeKindOf } from "../../src/sources/kubernetes/own-informers.ts";
import { ControllerBed, GENERATED } from "../support/cluster/controller-bed.ts";
import { ControllerProcess } from "../support/cluster/controller-process.ts";
import { attachLab } from "../support/cluster/lab.ts";
import { until } from "../support/wait.ts";

const SEED = Number(process.env["SVC_STORM_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const EDITS = 200;
const KILLS = 50;
const AGENTS = 20;
const PROVIDERS = 30;

let bed: ControllerBed;
let controllers: readonly ControllerProcess[];
let storm: Storm;

beforeAll(async () => {
  const lab = attachLab();
  bed = await ControllerBed.open(lab);
  storm = new Storm(SEED);
  controllers = ["controller-0", "controller-1"].map(
    (pod) =>
      new ControllerProcess({
        kubeconfig: lab.kubeconfig,
        folder: bed.folder,
        pod,
        namespace: bed.system,
        namespaces: [bed.namespace],
        restarts: true,
        settings: {
          leaderElection: { leaseSeconds: 3, renewSeconds: 2, retrySeconds: 0.2 },
          logLevel: "warn",
        },
      }),
  );
});

afterEach(({ task }) => {
  if (task.result?.state === "fail") process.stderr.write(`${storm.edits.join("\n")}\n`);
});

afterAll(async () => {
  await Promise.all(controllers.map(async (controller) => controller.stop("SIGKILL")));
  await bed.close();
});

/** Mulberry32: small, and the same everywhere. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface DeclaredAgent {
  readonly providers: readonly string[];
  readonly env: string;
  readonly requestsPerMinute: number;
  readonly hasWebhook: boolean;
  readonly variant: "service" | "template";
}

interface DeclaredProvider {
  readonly secret: string;
  readonly hosts: readonly string[];
  readonly allow: readonly string[];
}

/** What is declared, and how often each agent's pods may be replaced for it. */
class Storm {
  readonly agents = new Map<string, DeclaredAgent>();
  readonly providers = new Map<string, DeclaredProvider>();
  readonly replacements = new Map<string, number>();
  readonly edits: string[] = [];
  readonly #random: () => number;
  #count = 0;

  constructor(seed: number) {
    this.#random = randomOf(seed);
  }

  async begin(): Promise<void> {
    for (let i = 0; i < PROVIDERS; i += 1) {
      await bed.secret(`secret-${i}`, `ghp_${i}`);
      await this.#setProvider(`provider-${i}`, {
        secret: `secret-${i}`,
        hosts: [`host-${i}.example.com`],
        allow: [],
      });
      await bed.declare("ModelProvider", `model-${i}`, {
        provider: "openai",
        apiKeySecretRef: { name: `secret-${i}`, key: "token" },
      });
    }
    for (let i = 0; i < AGENTS; i += 1) await this.#setAgent(`agent-${i}`, this.#newAgent());
  }

  /** One edit of a random kind. */
  async edit(): Promise<void> {
    this.#count += 1;
    const agent = this.#pick([...this.agents.keys()]);
    const provider = this.#pick([...this.providers.keys()]);
    const edits: readonly (readonly [string, () => Promise<unknown>])[] = [
      ["policy", async () => this.#editProvider(provider, { allow: [`pulls:${this.#word()}`] })],
      [
        "hosts",
        async () => this.#editProvider(provider, { hosts: [`${this.#word()}.example.com`] }),
      ],
      ["secretRef", async () => this.#editProvider(provider, { secret: this.#secret() })],
      ["value", async () => this.#editSecret(this.#secret())],
      ["remove secret", async () => bed.client.delete(CORE.secret, bed.name(this.#secret()))],
      ["remove provider", async () => bed.remove("Provider", provider)],
      ["add provider", async () => this.#editProvider(provider, {})],
      ["model", async () => this.#editModel()],
      ["providers", async () => this.#editAgent(agent, { providers: this.#someProviders() })],
      ["env", async () => this.#editAgent(agent, { env: this.#word() })],
      ["limits", async () => this.#editAgent(agent, { requestsPerMinute: this.#count })],
      ["webhook", async () => this.#editAgent(agent, { hasWebhook: this.#random() < 0.5 })],
      ["variant", async () => this.#editAgent(agent, { variant: this.#variant() })],
      ["remove agent", async () => bed.remove("Agent", agent)],
      ["add agent", async () => this.#setAgent(agent, this.#newAgent())],
      ["remove object", async () => this.#removeGenerated()],
      ["edit object", async () => this.#editGenerated(agent)],
    ];
    const [what, apply] = this.#pick(edits);
    this.edits.push(`${this.#count} ${what} ${agent} ${provider}`);
    await apply();
  }

  /**
   * Makes every declared Provider and Secret exist: an Agent that lacks one keeps the workload that
   * it had, which depends on what was before.
   */
  async calm(): Promise<void> {
    for (let i = 0; i < PROVIDERS; i += 1)
      if ((await bed.find(CORE.secret, `secret-${i}`)) === undefined)
        await this.#editSecret(`secret-${i}`);
    for (const [name, provider] of this.providers) await this.#setProvider(name, provider);
  }

  /** An integer below a bound. */
  below(bound: number): number {
    return Math.floor(this.#random() * bound);
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }

  #word(): string {
    return `w${this.#count}`;
  }

  #secret(): string {
    return `secret-${this.below(PROVIDERS)}`;
  }

  #variant(): "service" | "template" {
    return this.#random() < 0.7 ? "service" : "template";
  }

  #someProviders(): readonly string[] {
    const names = [...this.providers.keys()];
    return [...new Set([this.#pick(names), this.#pick(names), this.#pick(names)])];
  }

  #newAgent(): DeclaredAgent {
    return {
      providers: this.#someProviders(),
      env: this.#word(),
      requestsPerMinute: 1 + this.#count,
      hasWebhook: this.#random() < 0.3,
      variant: "service",
    };
  }

  async #editAgent(name: string, change: Partial<DeclaredAgent>): Promise<void> {
    await this.#setAgent(name, { ...(this.agents.get(name) as DeclaredAgent), ...change });
  }

  async #setAgent(name: string, agent: DeclaredAgent): Promise<void> {
    const before = this.agents.get(name);
    this.agents.set(name, agent);
    const shownOf = ({
      requestsPerMinute: _limit,
      hasWebhook: _webhook,
      ...shown
    }: DeclaredAgent) => JSON.stringify(shown);
    if (before !== undefined && shownOf(before) !== shownOf(agent)) this.#mayReplace(name);
    await bed.agent(name, {
      variant: agent.variant,
      providers: agent.providers,
      env: [{ name: "WORD", value: agent.env }],
      rateLimits: { requestsPerMinute: agent.requestsPerMinute },
      ...(agent.hasWebhook ? { triggers: [{ webhook: {} }] } : {}),
    });
  }

  async #editProvider(name: string, change: Partial<DeclaredProvider>): Promise<void> {
    const provider = { ...(this.providers.get(name) as DeclaredProvider), ...change };
    if (change.hosts !== undefined || change.secret !== undefined) this.#mayReplaceUsersOf([name]);
    await this.#setProvider(name, provider);
  }

  async #setProvider(name: string, provider: DeclaredProvider): Promise<void> {
    this.providers.set(name, provider);
    await bed.provider(name, {
      auth: { type: "token", secretRef: provider.secret },
      hosts: provider.hosts,
      policy: { allow: provider.allow },
    });
  }

  async #editSecret(name: string): Promise<void> {
    const users = [...this.providers].flatMap(([provider, { secret }]) =>
      secret === name ? [provider] : [],
    );
    this.#mayReplaceUsersOf(users);
    await bed.secret(name, `ghp_${this.#word()}`);
  }

  async #editModel(): Promise<void> {
    const name = `model-${this.below(PROVIDERS)}`;
    if (this.#random() < 0.3) await bed.remove("ModelProvider", name);
    else
      await bed.declare("ModelProvider", name, {
        provider: "openai",
        apiKeySecretRef: { name: this.#secret(), key: "token" },
      });
  }

  async #removeGenerated(): Promise<void> {
    const kind = this.#pick(GENERATED);
    const objects = (await bed.all(kind)).toSorted((a, b) =>
      a.metadata.name < b.metadata.name ? -1 : 1,
    );
    const object = objects.length === 0 ? undefined : this.#pick(objects);
    if (object !== undefined) await bed.client.delete(kind, bed.name(object.metadata.name));
  }

  /** What the controller has declared is changed, and something is added. */
  async #editGenerated(agent: string): Promise<void> {
    const name = bed.name(`svc-${agent}`);
    if ((await bed.find(CORE.deployment, name.name)) === undefined) return;
    // The edit, the fields that are applied again, and the removal of what was added.
    for (let i = 0; i < 3; i += 1) this.#mayReplace(agent);
    await bed.client
      .merge(CORE.deployment, name, {
        spec: { replicas: 0, template: { spec: { hostPID: true } } },
      })
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
  }

  #mayReplace(agent: string): void {
    this.replacements.set(agent, (this.replacements.get(agent) ?? 0) + 1);
  }

  #mayReplaceUsersOf(providers: readonly string[]): void {
    for (const [name, agent] of this.agents)
      if (agent.providers.some((provider) => providers.includes(provider))) this.#mayReplace(name);
  }
}

/** Reconciliations of the processes that run. */
async function reconciled(): Promise<number> {
  const counts = await Promise.all(controllers.map(async (one) => one.reconciled()));
  return counts.reduce((sum, count) => sum + count, 0);
}

test(`${EDITS} edits and ${KILLS} kills, seed ${SEED}`, { timeout: 900_000 }, async () => {
  await storm.begin();
  for (const controller of controllers) await controller.start();
  await until(async () => (await bed.all(CORE.deployment)).length === AGENTS, {
    what: "the first Deployments",
  });
  let kills = 0;
  for (let edits = 0; edits < EDITS; edits += 1) {
    await storm.edit();
    if ((edits * KILLS) / EDITS < kills) continue;
    const victim = controllers[storm.below(controllers.length)] as ControllerProcess;
    await victim.stop("SIGKILL");
    kills += 1;
    await victim.start();
    // Every second time one of them has begun to work, and is killed in the midst of it.
    if (storm.below(2) === 0)
      await until(async () => (await reconciled()) > 0, {
        what: "a controller to lead",
      });
  }
  expect(kills).toBe(KILLS);
  await storm.calm();
  for (const controller of controllers) {
    await controller.stop();
    await controller.start();
  }
  await Promise.all(controllers.map(async (controller) => controller.ready()));
  const ended = await bed.settled();
  const deployments = await bed.all(CORE.deployment);
  const replaced = deployments.map(({ metadata }) => [
    metadata.name,
    (metadata.generation ?? 1) - 1,
  ]);
  const allowed = deployments.map(({ metadata }) => [
    metadata.name,
    storm.replacements.get(metadata.labels?.["svc.io/agent"] ?? "") ?? 0,
  ]);
  const needless = replaced.filter(([, times], i) => Number(times) > Number(allowed[i]?.[1]));
  expect(needless).toEqual([]);

  // Nothing belongs to an Agent that does not exist.
  const agents = await bed.all(kubeKindOf("Agent"), "");
  const uids = new Set(agents.map(({ metadata }) => metadata.uid));
  for (const { metadata } of (await bed.generated()).values()) {
    expect(metadata.ownerReferences?.length).toBe(1);
    expect(uids).toContain(metadata.ownerReferences?.[0]?.uid);
  }

  // The oracle: everything but the webhooks' tokens is deleted, and one controller begins anew.
  await Promise.all(controllers.map(async (controller) => controller.stop()));
  for (const kind of GENERATED)
    for (const { metadata } of await bed.all(kind))
      if (!metadata.name.startsWith("svc-webhook-"))
        await bed.client.delete(kind, bed.name(metadata.name));
  await (controllers[0] as ControllerProcess).start();
  await (controllers[0] as ControllerProcess).ready();
  const fresh = await bed.settled();
  expect(Object.keys(ended)).toEqual(Object.keys(fresh));
  for (const [name, value] of Object.entries(fresh))
    expect([name, ended[name]]).toEqual([name, value]);
});
