/**
 * An agent repeats its history in every turn: a guard asks the classifier about what is new only.
 * Verdicts are dropped when their GuardBinding changes, and a change is in force without a restart.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Answer } from "../support/client.ts";
import { useFixture } from "../support/fixture.ts";
import { ClassifierStub, INJECTION, JAILBREAK } from "../support/guard/classifier.ts";
import { TOOL } from "../support/guard/places.ts";
import { post } from "../support/guard/post.ts";
import { guardRecords } from "../support/guard/records.ts";
import { bindingYaml, type GuardRef, guardedYaml, SCAN_ALL } from "../support/guard/resources.ts";
import { accessKeyYaml, providerYaml, rawKey } from "../support/resources.ts";
import { MODELS } from "../support/samples.ts";
import { type DialectName, DIALECTS } from "../support/vendors.ts";
import { until } from "../support/wait.ts";

const TURNS = 50;

let classifier: ClassifierStub;

beforeAll(async () => {
  classifier = await ClassifierStub.start();
});

const ALL_MODELS = DIALECTS.map((name) => `${name}/*`);
const agent = (name: string, ...guards: GuardRef[]): readonly [string, string] => [
  `agent-${name}.yaml`,
  guardedYaml(name, ALL_MODELS, guards),
];
const named = (binding: string, more: Partial<GuardRef> = {}): GuardRef => ({
  binding,
  scan: SCAN_ALL,
  ...more,
});

const fixture = useFixture({
  providers: { openai: { spec: { externalAccess: { enabled: true } } } },
  files: ({ openai }) => ({
    ...Object.fromEntries([
      agent("looping", named("shared")),
      agent("other", named("shared")),
      agent("elsewhere", named("separate")),
      agent("changing", named("changing")),
      agent("missing", named("absent")),
      agent("relaxing", named("shared", { enforcement: "audit" })),
      agent("tightening", named("watch", { enforcement: "enforce" })),
      agent("several", named("watch"), named("shared"), named("jail")),
      agent("patient", named("patient")),
    ]),
    "shared.yaml": bindingYaml("shared", `${classifier.url}/shared`),
    "separate.yaml": bindingYaml("separate", `${classifier.url}/separate`),
    "watch.yaml": bindingYaml("watch", `${classifier.url}/watch`, { enforcement: "audit" }),
    "jail.yaml": bindingYaml("jail", `${classifier.url}/jail`),
    "patient.yaml": bindingYaml("patient", `${classifier.url}/patient`, {
      spec: { thresholds: { injection: 0.98, jailbreak: 0.9 } },
    }),
    "changing.yaml": bindingYaml("changing", `${classifier.url}/changing`),
    "watched.yaml": providerYaml("watched", openai, {
      spec: {
        externalAccess: { enabled: true, guards: [{ binding: "watch", scan: { prompts: true } }] },
      },
    }),
    "key-watched.yaml": accessKeyYaml("watched", "watched"),
    "key-tight.yaml": accessKeyYaml("tight", "watched", {
      guards: [{ binding: "watch", enforcement: "enforce", scan: { prompts: false } }],
    }),
  }),
});

afterAll(async () => classifier?.close());

const PATHS = {
  openai: "/v1/chat/completions",
  anthropic: "/v1/messages",
  gemini: `/v1beta/models/gemini/${MODELS.gemini}:generateContent`,
} as const;

async function send(caller: string, dialect: DialectName, body: object): Promise<Answer> {
  const model = `${dialect}/${MODELS[dialect]}`;
  const rest = { openai: { model }, anthropic: { model, max_tokens: 64 }, gemini: {} };
  return post({
    port: fixture.stack.port,
    path: PATHS[dialect],
    token: await fixture.stack.token(caller),
    body: { ...rest[dialect], ...body },
  });
}

/** A chat of one text; the provider answers. */
async function says(caller: string, content: string): Promise<Answer> {
  const { openai } = fixture.vendors;
  openai.always(openai.says({ text: ["Hello"] }));
  return send(caller, "openai", { messages: [{ role: "user", content }] });
}

/** What a turn says and fetches: a text of two parts, one of them longer than a piece. */
const thought = (of: string, turn: number): string => `I will read page ${turn + 100} of ${of}.`;
const fetched = (of: string, turn: number): readonly [string, string] => [
  `Page ${turn + 100}`,
  Array.from({ length: 300 }, (_, n) => `Line ${n + 100} of page ${turn + 100} of ${of}.`).join(
    " ",
  ),
];

/** The requests of a conversation, by the number of turns before. */
const CONVERSATIONS: Readonly<Record<DialectName, (turns: number) => object>> = {
  openai: (turns) => ({
    messages: [
      { role: "system", content: "You read pages." },
      { role: "user", content: "Read every page." },
      ...Array.from({ length: turns }, (_, turn) => [
        {
          role: "assistant",
          content: thought("openai", turn),
          tool_calls: [
            { id: `c${turn}`, type: "function", function: { name: TOOL, arguments: "{}" } },
          ],
        },
        {
          role: "tool",
          tool_call_id: `c${turn}`,
          content: fetched("openai", turn).map((text) => ({ type: "text", text })),
        },
      ]).flat(),
    ],
  }),
  anthropic: (turns) => ({
    system: "You read pages.",
    messages: [
      { role: "user", content: "Read every page." },
      ...Array.from({ length: turns }, (_, turn) => [
        {
          role: "assistant",
          content: [
            { type: "text", text: thought("anthropic", turn) },
            { type: "tool_use", id: `c${turn}`, name: TOOL, input: {} },
          ],
        },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: `c${turn}`,
              content: fetched("anthropic", turn).map((text) => ({ type: "text", text })),
            },
          ],
        },
      ]).flat(),
    ],
  }),
  gemini: (turns) => ({
    systemInstruction: { parts: [{ text: "You read pages." }] },
    contents: [
      { role: "user", parts: [{ text: "Read every page." }] },
      ...Array.from({ length: turns }, (_, turn) => [
        {
          role: "model",
          parts: [{ text: thought("gemini", turn) }, { functionCall: { name: TOOL, args: {} } }],
        },
        {
          role: "user",
          parts: [
            { functionResponse: { name: TOOL, response: { pages: fetched("gemini", turn) } } },
          ],
        },
      ]).flat(),
    ],
  }),
};

describe.each(DIALECTS)("a loop of %s", (dialect) => {
  test(`${TURNS} turns cost what is new in them`, { timeout: 60_000 }, async () => {
    const vendor = fixture.vendors[dialect];
    classifier.reset();
    const turns: { requests: number; characters: number }[] = [];
    for (let turn = 0; turn <= TURNS; turn += 1) {
      const before = { requests: classifier.requests.length, characters: classifier.characters };
      vendor.always(vendor.says({ text: [thought(dialect, turn)] }));
      const answer = await send("looping", dialect, CONVERSATIONS[dialect](turn));
      expect(answer.status).toBe(200);
      turns.push({
        requests: classifier.requests.length - before.requests,
        characters: classifier.characters - before.characters,
      });
    }
    // The first calls of the tool are new as well. Then each turn costs the same, however long its
    // history is.
    const [, , third, ...later] = turns;
    expect(later).toEqual(Array.from({ length: TURNS - 2 }, () => third));
    // The text itself, its overlaps, and what surrounds its border.
    const { length } = thought(dialect, TURNS) + fetched(dialect, TURNS).join("");
    expect(third?.characters).toBeGreaterThan(length);
    expect(third?.characters).toBeLessThan(2 * length);
    // Nothing is asked twice.
    const texts = classifier.texts();
    expect(new Set(texts).size).toBe(texts.length);

    // Another agent with the same guard shares the verdicts; one with another guard does not.
    classifier.reset();
    expect((await send("other", dialect, CONVERSATIONS[dialect](TURNS))).status).toBe(200);
    expect(classifier.texts()).toEqual([]);
    expect((await send("elsewhere", dialect, CONVERSATIONS[dialect](TURNS))).status).toBe(200);
    expect(classifier.texts("separate").length).toBeGreaterThan(TURNS);

    // What is flagged in the last turn is found, and nothing else is asked about.
    classifier.reset();
    const more = CONVERSATIONS[dialect](TURNS) as { messages?: object[]; contents?: object[] };
    more.messages?.push({ role: "user", content: INJECTION });
    more.contents?.push({ role: "user", parts: [{ text: INJECTION }] });
    const forwarded = vendor.requests.length;
    expect((await send("looping", dialect, more)).status).toBe(403);
    expect(vendor.requests).toHaveLength(forwarded);
    expect(classifier.texts().every((text) => text.includes(INJECTION))).toBe(true);
  });
});

/** Rewrites a file, and waits until the policy that it makes is in force. */
async function rewrite(file: string, text: string): Promise<void> {
  const { policyVersion } = await fixture.stack.status();
  fixture.stack.write(file, text);
  await until(async () => (await fixture.stack.status()).policyVersion !== policyVersion, {
    what: `the new ${file} to be in force`,
  });
}

describe("a changed GuardBinding", () => {
  const asked = async (mode: string): Promise<number> => {
    classifier.reset();
    expect((await says("changing", "What is the time?")).status).toBe(200);
    return classifier.texts(mode).filter((text) => text === "What is the time?").length;
  };
  const url = (): string => `${classifier.url}/changing`;
  /** Another one with each call. */
  let timeoutMs = 9_000;
  const restore = async (): Promise<void> =>
    rewrite("changing.yaml", bindingYaml("changing", url(), { timeoutMs: (timeoutMs -= 1) }));

  test.each<[string, () => string, string]>([
    [
      "threshold",
      () => bindingYaml("changing", url(), { spec: { thresholds: { injection: 0.6 } } }),
      "changing",
    ],
    [
      "model",
      () =>
        bindingYaml("changing", url(), {
          spec: { classifier: { type: "stub", endpoint: url(), model: "another" } },
        }),
      "changing",
    ],
    ["address", () => bindingYaml("changing", `${classifier.url}/moved`), "moved"],
  ])("by its %s drops the verdicts", async (_, changed, mode) => {
    await restore();
    expect(await asked("changing")).toBe(1);
    expect(await asked("changing")).toBe(0);
    await rewrite("changing.yaml", changed());
    expect(await asked(mode)).toBe(1);
    expect(await asked(mode)).toBe(0);
  });

  test("of another name drops none", async () => {
    await restore();
    expect(await asked("changing")).toBe(1);
    fixture.stack.write("new.yaml", bindingYaml("new", `${classifier.url}/new`));
    await rewrite("agent-new.yaml", guardedYaml("new", ALL_MODELS, [named("new")]));
    expect(await asked("changing")).toBe(0);
  });

  test("by its enforcement is in force without a restart", async () => {
    const { gateway } = fixture.stack.pids();
    await restore();
    for (const [enforcement, status] of [
      ["audit", 200],
      ["enforce", 403],
      ["audit", 200],
    ] as const) {
      await rewrite("changing.yaml", bindingYaml("changing", url(), { enforcement }));
      expect((await says("changing", INJECTION)).status).toBe(status);
    }
    expect(fixture.stack.pids().gateway).toBe(gateway);
  });

  test("by its threshold decides anew about the same text", async () => {
    await restore();
    for (const [injection, status] of [
      [0.97, 403],
      [0.98, 200],
    ] as const) {
      const spec = { thresholds: { injection } };
      await rewrite("changing.yaml", bindingYaml("changing", url(), { spec }));
      expect((await says("changing", INJECTION)).status).toBe(status);
    }
  });

  test("that is removed denies every call, until it is there again", async () => {
    const denied = await says("missing", "Hi");
    expect(denied.status).toBe(403);
    expect(denied.message).toContain("there is no GuardBinding absent");
    await rewrite("absent.yaml", bindingYaml("absent", `${classifier.url}/absent`));
    expect((await says("missing", "Hi")).status).toBe(200);
  });
});

describe("enforcement", () => {
  const readiness = async (name: string): Promise<unknown> =>
    (await fixture.stack.status()).objects.find((object) => object.name === name);

  test("an override that relaxes is rejected", async () => {
    expect((await says("relaxing", INJECTION)).status).toBe(403);
    expect(await readiness("relaxing")).toMatchObject({ ready: false, reason: "RelaxedGuard" });
    expect(await readiness("shared")).toMatchObject({ ready: false, reason: "RelaxedGuard" });
  });

  test("an override that tightens is in force", async () => {
    expect((await says("tightening", INJECTION)).status).toBe(403);
    expect(await readiness("tightening")).toMatchObject({ ready: true });
  });

  test("of an AccessKey tightens its ModelProvider's, and what is scanned is added", async () => {
    const { openai } = fixture.vendors;
    openai.always(openai.says({ text: ["Hello"] }));
    const statusOf = async (key: string): Promise<number> =>
      (
        await post({
          port: fixture.stack.externalPort,
          path: "/ext/v1/chat/completions",
          token: rawKey(key),
          body: { model: MODELS.openai, messages: [{ role: "user", content: INJECTION }] },
        })
      ).status;
    expect(await statusOf("watched")).toBe(200);
    expect(await statusOf("tight")).toBe(403);
  });

  test("several guards are asked at once, each is recorded, and one decides", async () => {
    classifier.reset();
    const text = `${INJECTION} for several`;
    const answer = await says("several", text);
    expect(answer.status).toBe(403);
    const { detail } = JSON.parse(answer.text) as { detail: { binding: string } };
    expect(["shared", "jail"]).toContain(detail.binding);
    for (const mode of ["watch", "shared", "jail"]) expect(classifier.texts(mode)).toEqual([text]);
    const callId = answer.headers["x-svc-call-id"];
    const records = await until(() => {
      const found = guardRecords(fixture.stack).filter(({ fields }) => fields["call"] === callId);
      return found.length >= 3 && found;
    });
    expect(records).toHaveLength(3);
    expect(records.map(({ type, fields }) => [type, fields["binding"]])).toEqual(
      expect.arrayContaining([
        ["GUARD.VIOLATION_AUDIT", "watch"],
        ["GUARD.VIOLATION_ENFORCE", "jail"],
        ["GUARD.VIOLATION_ENFORCE", "shared"],
      ]),
    );
  });

  test("each label has a threshold of its own", async () => {
    expect((await says("patient", INJECTION)).status).toBe(200);
    const answer = await says("patient", JAILBREAK);
    expect(answer.status).toBe(403);
    expect(JSON.parse(answer.text)).toMatchObject({ detail: { label: "jailbreak", score: 0.9 } });
  });
});
