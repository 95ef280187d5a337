/**
 * A classifier never blocks traffic by failing: whatever it does instead of answering, the call is
 * forwarded, counted as unavailable and recorded with its reason, and its text is never taken for
 * benign. A dead classifier is not waited for.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../support/fixture.ts";
import {
  classify,
  ClassifierStub,
  type Fault,
  FAULTS,
  INJECTION,
} from "../support/guard/classifier.ts";
import { GuardProcess } from "../support/guard/guard-process.ts";
import { post } from "../support/guard/post.ts";
import {
  added,
  type AuditRecord,
  type Checks,
  checksOf,
  guardRecords,
} from "../support/guard/records.ts";
import { bindingYaml, guardedYaml, SCAN_ALL } from "../support/guard/resources.ts";
import type { Answer } from "../support/client.ts";
import { MODELS } from "../support/samples.ts";
import { freePort } from "../support/stack.ts";
import { until } from "../support/wait.ts";

/** Timeout of classifiers that do not answer. */
const SHORT_MS = 300;
/** Timeout of the others. */
const LONG_MS = 10_000;

let classifier: ClassifierStub;
let service: GuardProcess;
let closedPort: number;

beforeAll(async () => {
  classifier = await ClassifierStub.start();
  service = await GuardProcess.start();
  closedPort = await freePort();
});

const FAULT_NAMES = Object.keys(FAULTS) as Fault[];
const isSilent = (name: Fault): boolean => FAULTS[name] === "timeout";

/** Classifiers beside those that are named by a fault, and what a guard with them scans. */
const OTHERS = {
  closed: () => `http://127.0.0.1:${closedPort}`,
  breaker: () => `${classifier.url}/breaker`,
  bulk: () => `${classifier.url}/bulk`,
  first: () => `${classifier.url}/first`,
  second: () => `${classifier.url}/second`,
  partly: () => `${classifier.url}/partly`,
  answers: () => `${classifier.url}/answers`,
  service: () => service.url,
} as const;

const REQUESTS = { ...SCAN_ALL, responses: false };
const ANSWERS = { prompts: false, responses: true };

const fixture = useFixture({
  files: () => {
    const files: Record<string, string> = {
      "absent.yaml": JSON.stringify({
        apiVersion: "svc.io/v1",
        kind: "GuardBinding",
        metadata: { name: "absent" },
        spec: { classifier: { type: "stub" } },
      }),
      "agent-absent.yaml": guarded("absent"),
      "agent-both.yaml": guardedYaml(
        "both",
        ["openai/*"],
        ["first", "second"].map((binding) => ({ binding, scan: REQUESTS })),
      ),
      "agent-watched.yaml": guardedYaml(
        "watched",
        ["openai/*"],
        [{ binding: "lenient", scan: REQUESTS }],
      ),
      "lenient.yaml": bindingYaml("lenient", `${classifier.url}/lenient`, {
        enforcement: "audit",
        timeoutMs: SHORT_MS,
      }),
    };
    for (const name of FAULT_NAMES) {
      const timeoutMs = isSilent(name) ? SHORT_MS : LONG_MS;
      files[`${name.toLowerCase()}.yaml`] = bindingYaml(
        name.toLowerCase(),
        `${classifier.url}/${name}`,
        { timeoutMs },
      );
      files[`agent-${name.toLowerCase()}.yaml`] = guarded(name.toLowerCase());
    }
    for (const [name, endpoint] of Object.entries(OTHERS)) {
      files[`${name}.yaml`] = bindingYaml(name, endpoint(), { timeoutMs: SHORT_MS });
      files[`agent-${name}.yaml`] = guarded(name);
    }
    return files;
  },
});

function guarded(binding: string): string {
  const scan = binding === "answers" ? ANSWERS : REQUESTS;
  return guardedYaml(binding, ["openai/*"], [{ binding, scan }]);
}

afterAll(async () => {
  await classifier?.close();
  await service?.end("SIGKILL");
});

interface Told {
  readonly answer: Answer;
  readonly forwarded: number;
  readonly callId: string;
}

async function tell(agent: string, content: unknown, more: object = {}): Promise<Told> {
  const { openai } = fixture.vendors;
  openai.always(openai.says({ text: ["Hello"] }));
  const before = openai.requests.length;
  const answer = await post({
    port: fixture.stack.port,
    path: "/v1/chat/completions",
    token: await fixture.stack.token(agent),
    body: {
      model: `openai/${MODELS.openai}`,
      messages: [{ role: "user", content }],
      ...more,
    },
  });
  const callId = String(answer.headers["x-svc-call-id"]);
  return { answer, forwarded: openai.requests.length - before, callId };
}

/** Unique, and flagged. */
let count = 0;
const flagged = (): string => `${INJECTION} ${(count += 1)}`;

async function checksDuring(work: () => Promise<void>): Promise<Checks> {
  const before = checksOf(await fixture.stack.metrics());
  await work();
  return added(before, checksOf(await fixture.stack.metrics()));
}

async function recordsOfCall(callId: string, atLeast = 1): Promise<readonly AuditRecord[]> {
  return until(
    () => {
      const found = guardRecords(fixture.stack).filter(({ fields }) => fields["call"] === callId);
      return found.length >= atLeast && found;
    },
    { what: `the records of call ${callId}` },
  );
}

async function openBreakers(): Promise<number> {
  return (await fixture.stack.metrics()).sum("svc_guard_breakers_open");
}

/** A call that is forwarded although its text would be flagged, and is recorded. */
async function expectUnavailable(agent: string, text: string, reason: string): Promise<void> {
  const workload = `default/${agent}`;
  let told: Told | undefined;
  const checks = await checksDuring(async () => {
    told = await tell(agent, text);
  });
  const { answer, forwarded, callId } = told as Told;
  expect([answer.status, forwarded]).toEqual([200, 1]);
  expect(checks).toEqual({ [`${workload} unavailable allow`]: 1 });
  const records = await recordsOfCall(callId);
  expect(records).toMatchObject([
    {
      type: "GUARD.UNAVAILABLE",
      fields: {
        binding: agent,
        classifier: "stub",
        label: "unavailable",
        pieces: 1,
        reason,
        workload,
      },
    },
  ]);
  expect(JSON.stringify(records)).not.toContain(INJECTION);
}

describe.each(FAULT_NAMES)("a classifier that fails: %s", (fault) => {
  test(`is unavailable: ${FAULTS[fault]}`, async () => {
    const agent = fault.toLowerCase();
    const text = flagged();
    await expectUnavailable(agent, text, FAULTS[fault]);
    // The failure is not remembered.
    await expectUnavailable(agent, text, FAULTS[fault]);
    expect(classifier.texts(fault)).toEqual([text, text]);
    // A redirect is not followed.
    expect(classifier.texts("good")).toEqual([]);
    classifier.repair(fault);
    const { answer, forwarded } = await tell(agent, text);
    expect([answer.status, forwarded]).toEqual([403, 0]);
  });
});

test("a classifier whose port is closed is unreachable", async () => {
  await expectUnavailable("closed", flagged(), "unreachable");
});

test("a guard without a guard service says what is missing", async () => {
  const { answer, callId } = await tell("absent", flagged());
  expect(answer.status).toBe(200);
  const [record] = await recordsOfCall(callId);
  expect(record?.fields).toMatchObject({
    reason: "misconfigured",
    problem: expect.stringContaining("spec.classifier.endpoint is not set"),
  });
});

describe("time", () => {
  test("a text of hundreds of pieces waits once for a classifier that hangs", async () => {
    classifier.set("bulk", "hang");
    const lines = Array.from({ length: 60_000 }, (_, n) => `Line ${n} is about nothing at all.`);
    const { answer, forwarded, callId } = await tell("bulk", lines.join("\n"));
    expect([answer.status, forwarded]).toEqual([200, 1]);
    const [record] = await recordsOfCall(callId);
    expect(record?.fields).toMatchObject({ reason: "timeout", pieces: expect.any(Number) });
    expect(record?.fields["pieces"]).toBeGreaterThan(200);
    // Those that were asked at once; a second wait would have asked about more.
    expect(classifier.texts("bulk")).toHaveLength(4);
    await until(() => classifier.underWay("bulk") === 0, { what: "the requests to be given up" });
  });

  test("two guards wait at the same time, and each is recorded", async () => {
    classifier.set("first", "hang");
    classifier.set("second", "hang");
    let most = 0;
    classifier.onRequest = () => {
      most = Math.max(most, classifier.underWay("first") + classifier.underWay("second"));
    };
    const { answer, callId } = await tell("both", flagged());
    classifier.onRequest = undefined;
    expect(answer.status).toBe(200);
    expect(most).toBe(2);
    const records = await recordsOfCall(callId, 2);
    expect(records.map(({ fields }) => [fields["binding"], fields["reason"]])).toEqual(
      expect.arrayContaining([
        ["first", "timeout"],
        ["second", "timeout"],
      ]),
    );
  });

  test("an answer is forwarded when its time is over, and a stream at once", async () => {
    classifier.set("answers", "hang");
    for (const stream of [false, true]) {
      const { answer, callId } = await tell("answers", "Hi", { stream });
      expect(answer.status).toBe(200);
      expect(answer.text).toContain("Hello");
      const [record] = await recordsOfCall(callId);
      expect(record).toMatchObject({
        type: "GUARD.UNAVAILABLE",
        fields: { binding: "answers", reason: "timeout" },
      });
    }
  });
});

describe("some pieces have a verdict and others have none", () => {
  /** Hangs for texts with this word. */
  const HANG = "hold the line";
  const messages = (text: string): object => ({
    messages: [
      { role: "user", content: `${HANG} ${count}` },
      { role: "assistant", content: "Hello." },
      { role: "user", content: text },
    ],
  });
  beforeAll(() => {
    for (const mode of ["partly", "lenient"])
      classifier.set(mode, (response, text) => {
        if (!text.includes(HANG)) return classify(response, text);
      });
  });

  test("a flagged piece decides", async () => {
    const checks = await checksDuring(async () => {
      const { answer, forwarded } = await tell("partly", "", messages(flagged()));
      expect([answer.status, forwarded]).toEqual([403, 0]);
    });
    expect(checks).toEqual({ "default/partly injection block": 1 });
  });

  test("benign pieces do not make the rest benign", async () => {
    const checks = await checksDuring(async () => {
      const { answer, callId } = await tell("partly", "", messages("Nothing."));
      expect(answer.status).toBe(200);
      const [record] = await recordsOfCall(callId);
      expect(record?.fields).toMatchObject({ pieces: 1, reason: "timeout" });
    });
    expect(checks).toEqual({ "default/partly unavailable allow": 1 });
  });

  test("in audit mode both are recorded", async () => {
    const checks = await checksDuring(async () => {
      const { answer, callId } = await tell("watched", "", messages(flagged()));
      expect(answer.status).toBe(200);
      const records = await recordsOfCall(callId, 2);
      expect(records.map(({ type }) => type).sort()).toEqual([
        "GUARD.UNAVAILABLE",
        "GUARD.VIOLATION_AUDIT",
      ]);
    });
    expect(checks).toEqual({ "default/watched injection audit": 1 });
  });
});

test("after three failures nobody waits, until a trial succeeds", async () => {
  classifier.set("breaker", "hang");
  const open = await openBreakers();
  const known = flagged();
  for (let failure = 0; failure < 3; failure += 1)
    await expectUnavailable("breaker", failure === 0 ? known : flagged(), "timeout");
  expect(await openBreakers()).toBe(open + 1);

  const CALLS = 30;
  const asked = classifier.texts("breaker").length;
  expect(asked).toBe(3);
  const told = await Promise.all(
    Array.from({ length: CALLS }, async () => tell("breaker", flagged())),
  );
  expect(told.map(({ answer }) => answer.status)).toEqual(Array.from({ length: CALLS }, () => 200));
  // Trials: one at a time, with a pause before each.
  expect(classifier.texts("breaker").length - asked).toBeLessThanOrEqual(3);
  expect(classifier.underWay("breaker")).toBeLessThanOrEqual(1);
  const [record] = await recordsOfCall(told.at(-1)?.callId ?? "");
  expect(record?.fields).toMatchObject({ reason: "breaker_open", pieces: 1 });

  // A trial that fails does not close it.
  const before = classifier.texts("breaker").length;
  await until(
    async () => {
      await tell("breaker", "Hi");
      return classifier.texts("breaker").length > before && classifier.underWay("breaker") === 0;
    },
    { what: "a trial that fails" },
  );
  expect(await openBreakers()).toBe(open + 1);

  classifier.repair("breaker");
  await until(async () => (await tell("breaker", known)).answer.status === 403, {
    what: "the classifier to be asked again",
  });
  expect(await openBreakers()).toBe(open);
  expect((await tell("breaker", flagged())).answer.status).toBe(403);
});

describe("the classifier service", () => {
  test("is killed, and started again", async () => {
    const known = flagged();
    expect((await tell("service", known)).answer.status).toBe(403);
    await service.end("SIGKILL");
    await expectUnavailable("service", flagged(), "unreachable");
    // What is known needs no classifier.
    expect((await tell("service", known)).answer.status).toBe(403);
    service = await GuardProcess.start(service.port);
    expect((await tell("service", flagged())).answer.status).toBe(403);
  });

  test("hangs, and goes on", async () => {
    service.signal("SIGSTOP");
    const text = flagged();
    await expectUnavailable("service", text, "timeout");
    service.signal("SIGCONT");
    await until(async () => (await tell("service", text)).answer.status === 403, {
      what: "the service to answer again",
    });
  });
});
