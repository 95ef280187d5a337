/**
 * Records of flagged texts contain no secret and no personal data: not in a file of the audit
 * folder, not in the log, not in the answer.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PIECE_CHARS } from "../../src/guard/pieces.ts";
import type { Answer } from "../support/client.ts";
import { useFixture } from "../support/fixture.ts";
import { ClassifierStub, INJECTION } from "../support/guard/classifier.ts";
import { TOOL } from "../support/guard/places.ts";
import { post } from "../support/guard/post.ts";
import { type AuditRecord, guardRecords } from "../support/guard/records.ts";
import { bindingYaml, guardedYaml, SCAN_ALL } from "../support/guard/resources.ts";
import {
  partsOfSecret,
  SECRET_KINDS,
  type SecretKind,
  SECRETS,
  SURROUNDINGS,
} from "../support/guard/secrets.ts";
import { MODELS } from "../support/samples.ts";
import { svc } from "../support/stack.ts";
import { until } from "../support/wait.ts";

const MODES = ["audit", "enforce"] as const;
type Mode = (typeof MODES)[number];

/** Lengths of stored texts. */
const CUT = 60;
const LONGEST = 100_000;

let classifier: ClassifierStub;

beforeAll(async () => {
  classifier = await ClassifierStub.start();
});

const fixture = useFixture({
  files: () => {
    const files: Record<string, string> = {};
    const add = (name: string, enforcement: Mode, audit: object): void => {
      const spec = { audit };
      files[`${name}.yaml`] = bindingYaml(name, classifier.url, { enforcement, spec });
      const guards = [{ binding: name, scan: SCAN_ALL }];
      files[`agent-${name}.yaml`] = guardedYaml(name, ["openai/*"], guards);
    };
    for (const mode of MODES) {
      add(`${mode}-long`, mode, { maxPayloadChars: LONGEST });
      // Another caller, because one gets 60 records of refusals at once.
      add(`${mode}-odd`, mode, { maxPayloadChars: LONGEST });
      add(`${mode}-cut`, mode, { maxPayloadChars: CUT });
      add(`${mode}-none`, mode, { savePayload: false });
    }
    return files;
  },
});

afterAll(async () => classifier?.close());

interface Asked {
  readonly agent: string;
  readonly messages: readonly object[];
  readonly more?: object;
  /** What the model answers. */
  readonly answer?: string;
}

async function ask({ agent, messages, more = {}, answer = "Hello" }: Asked): Promise<Answer> {
  const { openai } = fixture.vendors;
  openai.always(openai.says({ text: [answer] }));
  return post({
    port: fixture.stack.port,
    path: "/v1/chat/completions",
    token: await fixture.stack.token(agent),
    body: { model: `openai/${MODELS.openai}`, messages, ...more },
  });
}

async function recordOf(answer: Answer): Promise<AuditRecord> {
  const callId = answer.headers["x-svc-call-id"];
  return until(() => guardRecords(fixture.stack).find(({ fields }) => fields["call"] === callId), {
    what: `the record of ${String(callId)}`,
  });
}

const user = (content: unknown): object => ({ role: "user", content });

/** Every file of the audit folder, and the log. */
function everythingKept(): string {
  const dir = path.join(fixture.stack.stateDir, "audit");
  const files = readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(path.join(entry.parentPath, entry.name), "utf8"));
  expect(files.length).toBeGreaterThan(1);
  return [...files, fixture.stack.logs].join("\n");
}

function expectNowhere(secrets: readonly string[], ...more: readonly string[]): void {
  const kept = [everythingKept(), ...more].join("\n");
  for (const part of secrets.flatMap(partsOfSecret))
    // Without the text itself in the output of the test.
    expect(kept.includes(part), `a part of ${part.length} characters is kept`).toBe(false);
}

describe.each(MODES)("in %s mode", (mode) => {
  const status = mode === "audit" ? 200 : 403;

  test.each(SECRET_KINDS)("%s, in prompts and results of tools", async (kind: SecretKind) => {
    const secrets = SECRETS[kind]();
    const text = Object.values(SURROUNDINGS)
      .flatMap((surround) => secrets.map(surround))
      .join("\n\n");
    const calls: readonly (readonly object[])[] = [
      [user(`${INJECTION} (${kind}).\n${text}`)],
      [
        user("Read."),
        {
          role: "assistant",
          tool_calls: [{ id: "c", type: "function", function: { name: TOOL, arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "c", content: `${text}\n${INJECTION} (${kind}).` },
      ],
    ];
    for (const messages of calls) {
      const answer = await ask({ agent: `${mode}-long`, messages });
      expect(answer.status).toBe(status);
      const { payload } = (await recordOf(answer)).fields;
      expect(payload).toContain(INJECTION);
      expect(payload).toContain(`[REDACTED:${kind}]`);
      expectNowhere(secrets, answer.status === 403 ? answer.text : "");
    }
  });

  test("in an answer", async () => {
    const secrets = SECRET_KINDS.flatMap((kind) => SECRETS[kind]());
    const answer = await ask({
      agent: `${mode}-odd`,
      messages: [user("Hi")],
      answer: `${INJECTION}.\n${secrets.map((secret) => `Use ${secret} now.`).join("\n")}`,
    });
    expect(answer.status).toBe(status);
    const { fields } = await recordOf(answer);
    expect(fields).toMatchObject({ where: "response" });
    for (const kind of SECRET_KINDS) expect(fields["payload"]).toContain(`[REDACTED:${kind}]`);
    expectNowhere(secrets, answer.status === 403 ? answer.text : "");
  });

  test("in base64 that is decoded", async () => {
    const secrets = SECRETS["api-key"]();
    const text = Buffer.from(`${INJECTION}: ${secrets.join(" ")}`).toString("base64");
    const answer = await ask({ agent: `${mode}-odd`, messages: [user(text)] });
    expect(answer.status).toBe(status);
    expect((await recordOf(answer)).fields["payload"]).toContain("[REDACTED:api-key]");
    expectNowhere([...secrets, text]);
  });

  test("across the edges of pieces", async () => {
    for (const kind of ["api-key", "pem", "base64", "card"] as const) {
      const [secret = ""] = SECRETS[kind]();
      const edge = 2 * PIECE_CHARS;
      const before = `${kind}. `.repeat(PIECE_CHARS).slice(0, edge - secret.length / 2);
      const after = "Nothing else. ".repeat(1_000);
      // Each of the pieces that the edge is in or at is flagged once.
      for (const text of [
        `${before.slice(0, -200)} ${INJECTION} ${"z ".repeat(80)}${secret} ${after}`,
        `${before} ${secret} ${INJECTION} ${after}`,
      ]) {
        const answer = await ask({ agent: `${mode}-odd`, messages: [user(text)] });
        expect(answer.status).toBe(status);
        await recordOf(answer);
        const halves = partsOfSecret(secret).flatMap((part) => [
          part.slice(0, Math.ceil(part.length / 2)),
          part.slice(Math.floor(part.length / 2)),
        ]);
        expectNowhere(kind === "card" ? [secret] : halves);
      }
    }
  });

  test("in names of tools and of members", async () => {
    const [tool = "", member = ""] = SECRETS["api-key"]();
    const answers = [
      await ask({
        agent: `${mode}-odd`,
        messages: [
          user("Read."),
          {
            role: "assistant",
            tool_calls: [{ id: "c", type: "function", function: { name: tool, arguments: "{}" } }],
          },
          { role: "tool", tool_call_id: "c", content: INJECTION },
        ],
      }),
      await ask({ agent: `${mode}-odd`, messages: [user("Hi")], more: { [member]: INJECTION } }),
    ];
    for (const answer of answers) {
      expect(answer.status).toBe(status);
      await recordOf(answer);
    }
    expectNowhere([tool, member]);
  });

  test("the text is cut to its length", async () => {
    const text = `${INJECTION}, ${"and so on, ".repeat(100)}`;
    const answer = await ask({ agent: `${mode}-cut`, messages: [user(text)] });
    const { payload } = (await recordOf(answer)).fields;
    expect(payload).toBe(`${text.slice(0, CUT)}\u2026`);
    // A secret at the cut is replaced first.
    const [secret = ""] = SECRETS["api-key"]();
    const start = `${INJECTION} `.padEnd(CUT - 10, ".");
    const second = await ask({ agent: `${mode}-cut`, messages: [user(`${start} ${secret}`)] });
    const { payload: rest } = (await recordOf(second)).fields;
    expect(String(rest).slice(0, CUT)).toBe(`${start} [REDACTED`);
    expectNowhere([secret.slice(0, 16)]);
  });

  test("no text is stored where the binding says so", async () => {
    const answer = await ask({ agent: `${mode}-none`, messages: [user(INJECTION)] });
    const { fields } = await recordOf(answer);
    expect(fields).toMatchObject({ label: "injection", binding: `${mode}-none` });
    expect(fields).not.toHaveProperty("payload");
  });
});

describe("svc audit", () => {
  const audit = async (...args: string[]): Promise<string> => {
    const ran = await svc(["audit", ...args, "--state-dir", fixture.stack.stateDir]);
    expect(ran.code, ran.stderr).toBe(0);
    return ran.stdout;
  };

  test("shows the records of an agent's guards", async () => {
    const content = `${INJECTION} for svc audit`;
    for (const mode of MODES)
      await recordOf(await ask({ agent: `${mode}-none`, messages: [user(content)] }));
    for (const mode of MODES) {
      const agent = `${mode}-none`;
      const type = mode === "audit" ? "GUARD.VIOLATION_AUDIT" : "GUARD.VIOLATION_ENFORCE";
      const table = await audit(agent, "--type", "guard");
      const lines = table.split("\n").filter((line) => line.includes("GUARD."));
      expect(lines.length).toBeGreaterThan(0);
      for (const line of lines) {
        expect(line).toContain(type);
        expect(line).toContain(agent);
      }
      const found = (await audit(agent, "--type", "guard", "-o", "json"))
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as AuditRecord);
      expect(found.length).toBe(lines.length);
      expect(found.at(-1)).toMatchObject({
        type,
        fields: { binding: agent, label: "injection", where: "prompt", score: 0.97 },
      });
    }
  });

  test("the chain verifies", async () => {
    await recordOf(await ask({ agent: "audit-long", messages: [user(`${INJECTION} at last`)] }));
    await audit("verify");
  });
});
