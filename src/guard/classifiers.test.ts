import { Registry } from "prom-client";
import { afterEach, describe, expect, test } from "vitest";
import { FakeClock } from "../platform/testing.ts";
import type { ClassifierPolicy } from "../policy/snapshot.ts";
import { Classifiers } from "./classifiers.ts";
import { GuardMetrics } from "./metrics.ts";
import { classifierPolicy, judged, scores } from "./testing.ts";
import { type ClassifierReply, scoresReply, TestClassifier, until } from "./testing-server.ts";

const LONG = 60_000;
const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

async function setUp() {
  const server = await TestClassifier.start();
  const clock = new FakeClock();
  const registry = new Registry();
  const trust = (): never => {
    throw new Error("the certificates cannot be read");
  };
  const classifiers = new Classifiers({ clock, metrics: new GuardMetrics(registry), trust });
  open.push(
    () => classifiers.close(),
    () => server.close(),
  );
  const policy = classifierPolicy({ url: server.url });
  const ask = (text: string, more: Partial<ClassifierPolicy> = {}, timeoutMs = LONG) =>
    classifiers.ask({ ...policy, ...more }, text, timeoutMs);
  const metric = async (name: string): Promise<Readonly<Record<string, number>>> => {
    const found = await registry.getSingleMetric(name)?.get();
    return Object.fromEntries(
      (found?.values ?? []).map(({ labels, value }) => [Object.values(labels).join(), value]),
    );
  };
  const texts = (): readonly string[] =>
    server.requests.map(({ body }) => (JSON.parse(body) as { text: string }).text);
  return { server, clock, classifiers, ask, metric, texts };
}

const failed = (failure: string): object => ({ kind: "unavailable", failure });
const refusing: ClassifierReply = (_, response) => void response.writeHead(500).end();

/** Ends the connection without an answer. */
const resetting: ClassifierReply = (_, response) => void response.destroy();

describe("verdicts", () => {
  test("are remembered: a text is asked about once, and then nobody waits", async () => {
    const { server, ask, metric, texts } = await setUp();
    server.reply = scoresReply(scores(0.25));
    expect(await ask("one")).toEqual(judged(0.25));
    expect(ask("one")).toEqual(judged(0.25));
    expect(await ask("other")).toEqual(judged(0.25));
    expect(texts()).toEqual(["one", "other"]);
    expect(await metric("svc_guard_verdicts_total")).toEqual({
      "stub,classifier": 2,
      "stub,cache": 1,
    });
    expect(await metric("svc_guard_classified_characters_total")).toEqual({ stub: 8 });
  });

  test("of another classifier are asked for again", async () => {
    const { server, ask, texts } = await setUp();
    await ask("one");
    server.reply = scoresReply(scores(0.9));
    expect(await ask("one", { id: "classifier-2" })).toEqual(judged(0.9));
    expect(ask("one")).toEqual(judged(0));
    expect(texts()).toEqual(["one", "one"]);
  });

  test("that are none are not remembered", async () => {
    const { server, ask } = await setUp();
    server.reply = refusing;
    expect(await ask("one")).toEqual(failed("refused"));
    server.reply = scoresReply(scores(0.5));
    expect(await ask("one")).toEqual(judged(0.5));
  });
});

describe("requests under way", () => {
  test("one for a text, however many ask", async () => {
    const { ask, texts } = await setUp();
    const answers = await Promise.all([ask("one"), ask("one"), ask("two"), ask("one")]);
    expect(answers).toEqual([judged(0), judged(0), judged(0), judged(0)]);
    expect(texts().toSorted()).toEqual(["one", "two"]);
  });

  test("a caller with more time is not bound to the time of another", async () => {
    const { server, ask, texts } = await setUp();
    const { promise, resolve } = Promise.withResolvers<undefined>();
    server.reply = async (request, response) => {
      await promise;
      return scoresReply(scores(0.5))(request, response);
    };
    const [short, long] = [ask("one", {}, 50), ask("one", {}, LONG)];
    expect(await short).toEqual(failed("timeout"));
    resolve(undefined);
    expect(await long).toEqual(judged(0.5));
    expect(texts()).toEqual(["one", "one"]);
  });

  test("are bounded", async () => {
    const { server, ask, metric } = await setUp();
    server.reply = () => {};
    for (let count = 0; count < 2_048; count += 1) void ask(`${count}`);
    expect(ask("one more")).toEqual(failed("overloaded"));
    expect(ask("0")).toBeInstanceOf(Promise);
    expect(await metric("svc_guard_verdicts_total")).toEqual({ "stub,classifier": 2_048 });
  });
});

describe("a classifier that fails", () => {
  test("is not waited for after three failures, until a trial succeeds", async () => {
    const { server, clock, ask, metric, texts } = await setUp();
    server.reply = resetting;
    for (const text of ["a", "b", "c"]) expect(await ask(text)).toEqual(failed("unreachable"));
    expect(ask("d")).toEqual(failed("breaker_open"));
    expect(await metric("svc_guard_breakers_open")).toEqual({ stub: 1 });
    expect(texts()).toEqual(["a", "b", "c"]);

    server.reply = scoresReply(scores(0.5));
    clock.advance(1_000);
    expect(ask("e")).toEqual(failed("breaker_open"));
    expect(ask("f")).toEqual(failed("breaker_open"));
    await until(async () => (await metric("svc_guard_breakers_open"))["stub"] === 0);
    expect(ask("e")).toEqual(judged(0.5));
    expect(await ask("g")).toEqual(judged(0.5));
    expect(texts()).toEqual(["a", "b", "c", "e", "g"]);
    expect(await metric("svc_guard_classifier_failures_total")).toEqual({ "stub,unreachable": 3 });
  });

  test("nobody waits for the trial, not even for its own text", async () => {
    const { server, clock, ask } = await setUp();
    server.reply = resetting;
    for (const text of ["a", "b", "c"]) await ask(text);
    server.reply = () => {};
    clock.advance(1_000);
    expect([ask("a"), ask("a"), ask("a")]).toEqual([
      failed("breaker_open"),
      failed("breaker_open"),
      failed("breaker_open"),
    ]);
  });

  test("answers what is remembered all the same", async () => {
    const { server, ask } = await setUp();
    await ask("known");
    server.reply = resetting;
    for (const text of ["a", "b", "c"]) await ask(text);
    expect(ask("known")).toEqual(judged(0));
    expect(ask("new")).toEqual(failed("breaker_open"));
  });

  test("leaves others alone", async () => {
    const { server, ask } = await setUp();
    server.reply = resetting;
    for (const text of ["a", "b", "c"]) await ask(text);
    server.reply = scoresReply(scores(0.5));
    expect(await ask("a", { id: "classifier-2" })).toEqual(judged(0.5));
  });

  test("at once is asked again: its answer delays nobody, and may be due to the text", async () => {
    const { server, ask, metric, texts } = await setUp();
    server.reply = refusing;
    for (const text of ["a", "b", "c", "d"]) expect(await ask(text)).toEqual(failed("refused"));
    expect(texts()).toEqual(["a", "b", "c", "d"]);
    expect(await metric("svc_guard_breakers_open")).toEqual({ stub: 0 });
  });
});

describe("a classifier that cannot be asked", () => {
  test.each([
    ["without an address", { url: undefined }],
    ["with an address that is none", { url: "http://[" }],
    ["with a protocol that is none", { url: "ftp://x.example" }],
    ["whose certificates cannot be read", { url: "https://127.0.0.1:1/" }],
  ])("%s", async (_, more) => {
    const { ask } = await setUp();
    expect(await ask("one", more)).toEqual(failed("misconfigured"));
    expect(await ask("one", more)).toEqual(failed("misconfigured"));
  });
});

describe("classifiers that are not in use any more", () => {
  test("are closed and forgotten, with their state; their verdicts are not", async () => {
    const { server, classifiers, ask, metric } = await setUp();
    await ask("known");
    server.reply = resetting;
    for (const text of ["a", "b", "c"]) await ask(text);
    classifiers.retain(new Set(["classifier-1", "other"]));
    expect(ask("new")).toEqual(failed("breaker_open"));
    classifiers.retain(new Set(["other"]));
    expect(await metric("svc_guard_breakers_open")).toEqual({});
    await until(() => server.open === 0);
    server.reply = scoresReply(scores(0.5));
    expect(await ask("new")).toEqual(judged(0.5));
    expect(ask("known")).toEqual(judged(0));
  });

  test("their requests end", async () => {
    const { server, classifiers, ask } = await setUp();
    server.reply = () => {};
    const answer = ask("one");
    await until(() => server.requests.length > 0);
    classifiers.close();
    expect(await answer).toEqual(failed("unreachable"));
  });
});
