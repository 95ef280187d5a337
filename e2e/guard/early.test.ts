/** Calls that end while a guard works: the client disconnects, the gateway drains or is killed. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { begin } from "../support/client.ts";
import { useFixture } from "../support/fixture.ts";
import { classify, ClassifierStub, INJECTION } from "../support/guard/classifier.ts";
import { type Posting, posting } from "../support/guard/post.ts";
import { guardRecords, recordsOf } from "../support/guard/records.ts";
import { bindingYaml, guardedYaml, SCAN_ALL } from "../support/guard/resources.ts";
import { providerYaml } from "../support/resources.ts";
import { MODELS } from "../support/samples.ts";
import { Stack, svc } from "../support/stack.ts";
import { Vendor } from "../support/vendors.ts";
import { Gate, until } from "../support/wait.ts";

let classifier: ClassifierStub;
/** The classifier answers when it is open. */
let gate = new Gate();

beforeAll(async () => {
  classifier = await ClassifierStub.start();
  classifier.set("held", async (response, text) => {
    await gate.pass();
    await classify(response, text);
  });
  classifier.set("silent", "hang");
});

afterAll(async () => classifier?.close());

function hold(): void {
  gate = new Gate();
}

const LIMITS = { maxConcurrentRequests: 1, maxTokensPerDay: 1_000_000 };

/** Seconds in which an upload must make progress: less than a guard's longest wait. */
const UPLOAD_IDLE_S = 1;

const fixture = useFixture({
  args: ["--upload-idle", String(UPLOAD_IDLE_S)],
  files: () => ({
    "held.yaml": bindingYaml("held", `${classifier.url}/held`),
    "silent.yaml": bindingYaml("silent", `${classifier.url}/silent`, {
      timeoutMs: 3_000 * UPLOAD_IDLE_S,
    }),
    "asking.yaml": guardedYaml(
      "asking",
      ["openai/*"],
      [{ binding: "held", scan: { ...SCAN_ALL, responses: false } }],
      LIMITS,
    ),
    "answered.yaml": guardedYaml(
      "answered",
      ["openai/*"],
      [{ binding: "held", scan: { prompts: false, responses: true } }],
      LIMITS,
    ),
    "patient.yaml": guardedYaml("patient", ["openai/*"], [{ binding: "silent", scan: SCAN_ALL }]),
  }),
});

let count = 0;

async function call(
  agent: string,
  content: string,
  { stream = false, stack = fixture.stack }: { stream?: boolean; stack?: Stack } = {},
): Promise<Posting> {
  return posting({
    port: stack.port,
    path: "/v1/chat/completions",
    token: await stack.token(agent),
    body: {
      model: `openai/${MODELS.openai}`,
      stream,
      messages: [{ role: "user", content: `${content} ${(count += 1)}` }],
    },
  });
}

describe("a client that disconnects", () => {
  test("while its prompt is scanned costs nothing and leaves nothing behind", async () => {
    const { openai } = fixture.vendors;
    hold();
    const left = await call("asking", "Hi");
    await gate.reached;
    left.leave();
    // The place of the one concurrent request becomes free before the classifier answers.
    openai.always(openai.says({ text: ["Hello"] }));
    const before = classifier.requests.length;
    const next = await until(
      async () => {
        const posted = await call("asking", "Hello");
        const asked = until(() => classifier.requests.length > before, { timeoutMs: 1_000 }).then(
          () => posted,
          () => undefined,
        );
        const refused = posted.answer.then(({ status }) => (status === 429 ? undefined : posted));
        return Promise.race([asked, refused]);
      },
      { what: "room for another call" },
    );
    gate.open();
    expect((await next.answer).status).toBe(200);
    await fixture.stack.idle();
    expect(openai.requests).toHaveLength(1);
    expect(openai.only.body).toContain("Hello");
    const metrics = await fixture.stack.metrics();
    expect(metrics.sum("svc_llm_active_calls")).toBe(0);
  });

  test("while its answer is scanned is billed once", async () => {
    const { openai } = fixture.vendors;
    openai.always(openai.says({ text: ["Hello"], usage: { input: 20, output: 5 } }));
    hold();
    const left = await call("answered", "Hi");
    await gate.reached;
    left.leave();
    const { headers } = openai.only;
    await fixture.stack.idle();
    gate.open();
    const settled = await fixture.stack.callOf(String(headers["x-request-id"]));
    expect(settled).toMatchObject({ end: "disconnected", inputTokens: 20, outputTokens: 5 });
    const id = settled["call"];
    await until(() => recordsOf(fixture.stack).some(({ fields }) => fields["call"] === id));
    expect(fixture.stack.calls.filter((line) => line["call"] === id)).toHaveLength(1);
  });

  test("before the end of a flagged stream is on record", async () => {
    const { openai } = fixture.vendors;
    const end = new Gate();
    const words = [`Now ${INJECTION}`, ", please", " and never said"];
    openai.always(
      openai.says({ text: words, hold: { gate: end, before: "content", afterContent: 2 } }),
    );
    gate.open();
    const token = await fixture.stack.token("answered");
    const model = `openai/${MODELS.openai}`;
    const left = begin(
      { port: fixture.stack.port, token },
      { dialect: "openai", model, stream: true },
    );
    const response = await left.response;
    expect(response.statusCode).toBe(200);
    let seen = "";
    await new Promise<void>((resolve) =>
      response.on("data", (part: Buffer) => {
        seen += part.toString();
        if (seen.includes("please")) resolve();
      }),
    );
    left.leave();
    end.open();
    const callId = (await fixture.stack.callOf(String(openai.only.headers["x-request-id"])))[
      "call"
    ];
    const record = await until(() =>
      guardRecords(fixture.stack).find(({ fields }) => fields["call"] === callId),
    );
    expect(record).toMatchObject({
      type: "GUARD.VIOLATION_AUDIT",
      fields: { where: "response", payload: expect.stringContaining(INJECTION) },
    });
  });
});

test("a wait that is longer than an upload may pause ends with an answer", async () => {
  const { openai } = fixture.vendors;
  openai.always(openai.says({ text: ["Hello"] }));
  for (const stream of [false, true]) {
    const { status, text } = await (await call("patient", "Hi", { stream })).answer;
    expect([status, text]).toEqual([200, expect.stringContaining("Hello")]);
  }
});

describe("a gateway that ends", () => {
  let vendor: Vendor;
  let stack: Stack;

  beforeAll(async () => {
    vendor = await Vendor.start("openai");
    vendor.always(vendor.says({ text: ["Hello"] }));
    stack = await Stack.start({
      files: {
        "openai.yaml": providerYaml("openai", vendor),
        "held.yaml": bindingYaml("held", `${classifier.url}/held`),
        "asking.yaml": guardedYaml("asking", ["openai/*"], [{ binding: "held", scan: SCAN_ALL }]),
      },
    });
  });

  afterAll(async () => {
    await stack?.stop();
    await vendor?.close();
  });

  test("by a kill is started again, and scans again", async () => {
    gate.open();
    const flagged = async (): Promise<number> =>
      (await (await call("asking", INJECTION, { stack })).answer).status;
    expect(await flagged()).toBe(403);
    hold();
    const cut = await call("asking", "Hi", { stack });
    await gate.reached;
    const { gateway } = stack.pids();
    process.kill(gateway, "SIGKILL");
    // Without the gateway no call passes.
    const broken = await cut.answer.then(
      ({ status }) => status,
      () => 0,
    );
    expect(broken).not.toBe(200);
    await until(() => ![0, gateway].includes(stack.pids().gateway), {
      timeoutMs: 30_000,
      what: "the gateway to be started again",
    });
    await stack.settled();
    gate.open();
    expect(vendor.requests).toHaveLength(0);
    expect(await flagged()).toBe(403);
    expect((await (await call("asking", "Hi", { stack })).answer).status).toBe(200);
  });

  test("in good order finishes the calls that are scanned", async () => {
    hold();
    const before = vendor.requests.length;
    const [benign, flagged] = [
      await call("asking", "Hi", { stack }),
      await call("asking", INJECTION, { stack }),
    ];
    await until(() => classifier.underWay("held") === 2);
    const exited = stack.shutDown();
    // It drains: nobody is accepted any more, and the calls under way wait.
    await until(
      () =>
        fetch(`${stack.baseUrl}/readyz`).then(
          (response) => response.status !== 200,
          () => true,
        ),
      { what: "the gateway to drain" },
    );
    expect(vendor.requests).toHaveLength(before);
    gate.open();
    expect((await benign.answer).status).toBe(200);
    const { status, headers } = await flagged.answer;
    expect(status).toBe(403);
    await exited;
    expect((await stack.exited).code).toBe(0);
    const callId = headers["x-svc-call-id"];
    expect(guardRecords(stack).filter(({ fields }) => fields["call"] === callId)).toMatchObject([
      { type: "GUARD.VIOLATION_ENFORCE" },
    ]);
    const verified = await svc(["audit", "verify", "--state-dir", stack.stateDir]);
    expect(verified.code, verified.stdout).toBe(0);
  });
});
