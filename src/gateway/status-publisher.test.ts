import { expect, test } from "vitest";
import { compile, type Compiled } from "../compile/compile.ts";
import { FakeClock } from "../platform/testing.ts";
import type { EnvoyAnswer } from "../policy/status.ts";
import { parseDocuments } from "../resources/parse.ts";
import { buildResourceSet } from "../resources/resource-set.ts";
import { NO_GENERATIONS } from "../sources/load-result.ts";
import { StatusPublisher } from "./status-publisher.ts";
import { StatusTable } from "./status-sink.ts";

const provider = (name: string, host: string): string =>
  `apiVersion: svc.io/v1\nkind: ModelProvider\nmetadata: {name: ${name}}\nspec: {provider: ` +
  `openai-compatible, baseURL: "http://${host}/v1"}\n`;

function compiled(...texts: string[]): Compiled {
  const { resources, problems } = parseDocuments(texts.join("---\n"), "f.yaml");
  return compile(
    { resources: buildResourceSet(resources), problems, generations: NO_GENERATIONS },
    {
      env: {},
      now: 0,
      tokenHashesOf: (namespace, name) => [`${namespace}/${name}`],
      guardEndpoint: undefined,
      mockEndpoint: undefined,
      service: () => undefined,
    },
  );
}

class World {
  readonly clock = new FakeClock(Date.UTC(2026, 10, 22));
  readonly table = new StatusTable(this.clock);
  /** Answers by a part of the names of clusters; others are accepted. */
  readonly answers = new Map<string, EnvoyAnswer>();
  readonly publisher = new StatusPublisher({
    sinks: [this.table],
    answers: {
      answerFor: (clusters) =>
        [...this.answers].find(([part]) => clusters.some((name) => name.includes(part)))?.[1] ?? {
          kind: "accepted",
        },
    },
  });

  /** `<name> <reason>; <type>=<status>@<seconds since the start>...` of each object. */
  shown(): string[] {
    return this.table.current.map(
      ({ name, reason, conditions }) =>
        `${name} ${reason}; ${conditions
          .map(
            ({ type, status, lastTransitionTime }) =>
              `${type}=${status}@` +
              (Date.parse(lastTransitionTime) - Date.UTC(2026, 10, 22)) / 1_000,
          )
          .join(" ")}`,
    );
  }
}

const AGENT =
  "apiVersion: svc.io/v1\nkind: Agent\nmetadata: {name: app}\nspec: {models: [a/*, b/*]}\n";

test("a rejection by Envoy shows on the ModelProvider that it concerns, until it is accepted", () => {
  const world = new World();
  world.publisher.inForce(compiled(provider("a", "a.test"), provider("b", "b.test"), AGENT));
  expect(world.shown()).toEqual([
    "app Ready; Ready=True@0",
    "a Ready; Ready=True@0 Programmed=True@0",
    "b Ready; Ready=True@0 Programmed=True@0",
  ]);
  world.clock.advance(5_000);
  world.answers.set("default/b@", { kind: "rejected", message: "no CA" });
  world.publisher.refresh();
  expect(world.shown()).toEqual([
    "app Ready; Ready=True@0",
    "a Ready; Ready=True@0 Programmed=True@0",
    "b EnvoyRejected; Ready=False@5 Programmed=False@5",
  ]);
  expect(world.table.current[2]).toMatchObject({
    ready: false,
    message: "Envoy rejected its clusters: no CA",
  });
  world.clock.advance(5_000);
  world.answers.clear();
  world.publisher.refresh();
  expect(world.shown()[2]).toBe("b Ready; Ready=True@10 Programmed=True@10");
});

test("an answer that is missing is unknown, and says nothing against the object", () => {
  const world = new World();
  world.answers.set("default/", { kind: "pending", message: "no Envoy is connected" });
  world.publisher.inForce(compiled(provider("a", "a.test")));
  expect(world.shown()).toEqual(["a Ready; Ready=True@0 Programmed=Unknown@0"]);
});

test("a ModelProvider without clusters has no such condition", () => {
  const world = new World();
  const unusable =
    "apiVersion: svc.io/v1\nkind: ModelProvider\nmetadata: {name: a}\nspec: {provider: " +
    "openai, apiKeySecretRef: {name: x, key: y}}\n";
  world.publisher.inForce(compiled(unusable));
  expect(world.shown()).toEqual(["a SecretDoesNotExist; Ready=False@0"]);
});

test("the clusters are those of the newest configuration in force", () => {
  const world = new World();
  world.answers.set("http://a.test", { kind: "rejected", message: "no" });
  world.publisher.inForce(compiled(provider("a", "a.test")));
  expect(world.shown()[0]).toContain("EnvoyRejected");
  world.publisher.inForce(compiled(provider("a", "b.test")));
  expect(world.shown()[0]).toContain("a Ready;");
});
