/**
 * Every place of a text in every API that the guard scans, through the real Envoy: what is scanned,
 * what is answered, what reaches the provider, what is recorded and what is counted.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ClassifierStub, INJECTION, relay } from "../support/guard/classifier.ts";
import { GuardProcess } from "../support/guard/guard-process.ts";
import { APIS, type GuardedApi, type Place, PLACES, reportedOf } from "../support/guard/places.ts";
import { bindingYaml, type GuardRef, guardedYaml, SCAN_ALL } from "../support/guard/resources.ts";
import { type GuardedCase, type Observed, runTable } from "../support/guard/table.ts";
import { accessKeyYaml, providerYaml, rawKey } from "../support/resources.ts";
import { MODELS } from "../support/samples.ts";
import { Stack } from "../support/stack.ts";
import { type DialectName, DIALECTS, Vendor } from "../support/vendors.ts";

type Enforcement = "enforce" | "audit";

/** countTokens may contain a whole request, which names a model. */
const ALLOWED = { allowedFeatures: ["otherModels"] };

/** Score that the service gives to what contains one of its substrings. */
const SCORE = 1;

/** What a guard scans. */
const SCANS = {
  everything: SCAN_ALL,
  prompts: { prompts: true, responses: false },
  "results of every tool": { prompts: false, toolResults: { tools: ["*"] } },
  "results of the tool": { prompts: false, toolResults: { tools: ["web_fetch"] } },
  "results of another tool": { prompts: false, toolResults: { tools: ["web_search"] } },
  responses: { prompts: false, responses: true },
} as const satisfies Readonly<Record<string, GuardRef["scan"]>>;

type ScanName = keyof typeof SCANS;

/** A caller whose calls are guarded so. */
interface Guarded {
  readonly enforcement: Enforcement;
  readonly scan: ScanName;
}

interface Row extends Guarded {
  readonly id: string;
  readonly api: GuardedApi;
  readonly place: Place;
  readonly stream: boolean;
  /** Name of the caller. */
  readonly caller: string;
  readonly external: boolean;
}

/** Places that exist in an API. */
const placesOf = ({ answers }: GuardedApi): readonly Place[] =>
  PLACES.filter((place) => answers || place !== "response");

/** Names of resources have no capitals and no spaces. */
const slug = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");

interface Expected {
  readonly status: 200 | 403;
  readonly where: "prompt" | "tool_result" | "response" | undefined;
  readonly forwarded: 0 | 1;
  /** `<label> <action>` of each check. */
  readonly checks: readonly string[];
  readonly record: "GUARD.VIOLATION_ENFORCE" | "GUARD.VIOLATION_AUDIT" | undefined;
}

/** What the documentation of the guard promises. */
function expectedOf({ api, place, stream, enforcement, scan: name }: Row): Expected {
  const scan: Exclude<GuardRef["scan"], undefined> = SCANS[name];
  const tools: readonly string[] = scan.toolResults?.tools ?? [];
  const isResult = place.startsWith("tool result");
  const scansResult = isResult && (tools.includes("*") || tools.includes("web_fetch"));
  // Gemini's results of functions are part of the prompt.
  const flattened = isResult && !scansResult && api.vendor === "gemini" && scan.prompts === true;
  const scansRequest = scan.prompts === true || scansResult;
  const scansAnswer = scan.responses === true && api.answers;
  const where =
    place === "response"
      ? scansAnswer
        ? "response"
        : undefined
      : scansResult
        ? "tool_result"
        : (!isResult && scan.prompts === true) || flattened
          ? "prompt"
          : undefined;
  const blocks = where !== undefined && enforcement === "enforce";
  const blocksRequest = blocks && where !== "response";
  const blocksAnswer = blocks && where === "response" && !stream;
  const found = blocksRequest || blocksAnswer ? "injection block" : "injection audit";
  const ofRequest = where === undefined || where === "response" ? "benign allow" : found;
  const ofAnswer = where === "response" ? found : "benign allow";
  return {
    status: blocksRequest || blocksAnswer ? 403 : 200,
    where,
    forwarded: blocksRequest ? 0 : 1,
    checks: [
      ...(scansRequest ? [ofRequest] : []),
      ...(scansAnswer && !blocksRequest ? [ofAnswer] : []),
    ],
    record:
      where === undefined
        ? undefined
        : blocksRequest || blocksAnswer
          ? "GUARD.VIOLATION_ENFORCE"
          : "GUARD.VIOLATION_AUDIT",
  };
}

const vendors: Record<string, Vendor> = {};
/** The classifier service; what it is asked passes the stub, which notes it. */
let service: GuardProcess;
let classifier: ClassifierStub;

beforeAll(async () => {
  service = await GuardProcess.start();
  classifier = await ClassifierStub.start();
  classifier.set("service", relay(service.url));
  for (const name of DIALECTS) vendors[name] = await Vendor.start(name);
});

afterAll(async () => {
  await classifier?.close();
  await service?.end("SIGTERM");
  for (const vendor of Object.values(vendors)) await vendor.close();
});

interface Setup {
  readonly files: Readonly<Record<string, string>>;
  readonly rows: readonly Row[];
  /** Bearer and model of a row. */
  readonly access: (row: Row, stack: Stack) => Promise<{ token: string; model: string }>;
}

/** Runs the rows before the tests, each of which looks at one of them. */
function useTable(setUp: () => Setup): (row: Row) => Observed {
  let seen: ReadonlyMap<string, Observed> = new Map();
  let stack: Stack | undefined;
  beforeAll(async () => {
    const { files, rows, access } = setUp();
    const running = await Stack.start({
      files: {
        "enforce.yaml": bindingYaml("enforce", `${classifier.url}/service`),
        "audit.yaml": bindingYaml("audit", `${classifier.url}/service`, { enforcement: "audit" }),
        ...files,
      },
    });
    stack = running;
    const cases: GuardedCase[] = [];
    for (const row of rows) {
      const { token, model } = await access(row, running);
      cases.push({ ...row, token, model, checks: expectedOf(row).checks.length });
    }
    const byName = vendors as Record<DialectName, Vendor>;
    seen = await runTable(cases, {
      stack: running,
      vendors: byName,
      classifier,
      pattern: INJECTION,
    });
  }, 120_000);
  afterAll(async () => stack?.stop());
  return ({ id }) => seen.get(id) as Observed;
}

/** The member `detail` of a refusal, and the vendor's own form beside it. */
function expectRefused({ answer }: Observed, row: Row, reported: object): void {
  const { detail, ...body } = JSON.parse(answer.text) as {
    detail: { message: string };
    error: { message: string };
  };
  expect(detail).toEqual({
    code: "guard_violation",
    binding: row.enforcement,
    label: "injection",
    score: SCORE,
    message: expect.stringMatching(/^The guard enforce found a prompt injection in .*\.$/),
    ...reported,
  });
  const { message } = detail;
  const reason = { "@type": "type.googleapis.com/google.rpc.ErrorInfo", domain: "svc.io" };
  const forms: Readonly<Record<DialectName, object>> = {
    openai: { error: { message, type: "permission_error", param: null, code: "guard_violation" } },
    anthropic: {
      type: "error",
      error: { type: "permission_error", message, details: { error_code: "guard_violation" } },
    },
    gemini: {
      error: {
        code: 403,
        status: "PERMISSION_DENIED",
        message,
        details: [{ ...reason, reason: "GUARD_VIOLATION" }],
      },
    },
  };
  expect(body).toEqual(forms[row.api.errors]);
  expect(answer.headers["content-type"]).toBe("application/json");
  // Whether the text was flagged is no reason to show it.
  expect(answer.text).not.toContain(INJECTION);
}

function expectRow(row: Row, seen: Observed): void {
  const { api, place, stream } = row;
  const expected = expectedOf(row);
  const text = `${INJECTION} ${row.id}`;
  const workload = row.external ? `ext:${row.caller}` : `default/${row.caller}`;
  const { where: place_, tool, param } = reportedOf(api, place, stream);
  const where = expected.where ?? place_;

  expect(seen.answer.status).toBe(expected.status);
  expect(seen.forwarded, "requests at the provider").toBe(expected.forwarded);
  expect(
    seen.texts.some((asked) => asked.includes(text)),
    "the classifier is asked about the text",
  ).toBe(expected.where !== undefined);

  const checks: Record<string, number> = {};
  for (const check of expected.checks) {
    const key = `${workload} ${check}`;
    checks[key] = (checks[key] ?? 0) + 1;
  }
  expect(seen.checks).toEqual(checks);
  expect(seen.measured).toBe(expected.checks.length);

  const reportedTool = where === "tool_result" ? tool : "";
  if (expected.status === 403) expectRefused(seen, row, { where, tool: reportedTool });

  const guardRecords = seen.records.filter(({ type }) => type.startsWith("GUARD."));
  expect(guardRecords.map(({ type }) => type)).toEqual(
    expected.record === undefined ? [] : [expected.record],
  );
  if (expected.record === undefined) return;
  expect(guardRecords[0]?.fields).toEqual({
    asked: expect.stringMatching(new RegExp(`${MODELS[api.vendor]}$`)),
    binding: row.enforcement,
    call: seen.callId,
    classifier: "stub",
    client_ip: "127.0.0.1",
    flagged: expect.any(Number),
    label: "injection",
    param,
    payload: expect.stringContaining(text),
    score: SCORE,
    where,
    workload,
    ...(reportedTool === "" ? {} : { tool: reportedTool }),
    ...(row.external ? { source: "external", access_key: `default/${row.caller}` } : {}),
  });
}

const titled = (rows: readonly Row[]): [string, Row][] =>
  rows.map((row) => [
    `${row.api.name}, ${row.place}${row.stream ? ", streamed" : ""}: ${row.enforcement}, ` +
      `scans ${row.scan}`,
    row,
  ]);

describe("agents", () => {
  const guarded: readonly Guarded[] = [
    { enforcement: "enforce", scan: "everything" },
    ...(Object.keys(SCANS) as ScanName[]).map((scan) => ({ enforcement: "audit", scan }) as const),
  ];
  // Each API has its own agents, because one caller gets 60 records of refusals at once.
  const nameOf = (api: GuardedApi, { enforcement, scan }: Guarded): string =>
    slug(`${api.name} ${enforcement} ${scan}`);
  const rows = APIS.flatMap((api) =>
    guarded.flatMap((how) =>
      placesOf(api).flatMap((place) =>
        (api.streams ? [false, true] : [false]).map((stream): Row => {
          const caller = nameOf(api, how);
          const id = `${caller} ${slug(place)}${stream ? " streamed" : ""}`;
          return { ...how, id, api, place, stream, caller, external: false };
        }),
      ),
    ),
  );
  const seen = useTable(() => ({
    rows,
    files: Object.fromEntries([
      ...DIALECTS.map((name) => [
        `${name}.yaml`,
        providerYaml(name, vendors[name] as Vendor, { spec: ALLOWED }),
      ]),
      ...APIS.flatMap((api) =>
        guarded.map((how) => {
          const name = nameOf(api, how);
          const guards = [{ binding: how.enforcement, scan: SCANS[how.scan] }];
          return [`agent-${name}.yaml`, guardedYaml(name, [`${api.vendor}/*`], guards)];
        }),
      ),
    ]) as Record<string, string>,
    access: async ({ api, caller }, stack) => ({
      token: await stack.token(caller),
      model: `${api.vendor}/${MODELS[api.vendor]}`,
    }),
  }));

  test.each(titled(rows))("%s", (_title, row) => expectRow(row, seen(row)));
});

describe("under /ext", () => {
  const SOURCES = ["ModelProvider", "AccessKey"] as const;
  const ENFORCEMENTS = ["enforce", "audit"] as const;
  type Source = (typeof SOURCES)[number];
  const nameOf = (vendor: DialectName, source: Source, enforcement: Enforcement): string =>
    slug(`${vendor} ${enforcement} by ${source}`);
  const rowsOf = (source: Source): readonly Row[] =>
    APIS.flatMap((api) =>
      ENFORCEMENTS.flatMap((enforcement) =>
        placesOf(api).map((place): Row => {
          const caller = nameOf(api.vendor, source, enforcement);
          const id = `${caller} ${slug(api.name)} ${slug(place)}`;
          const stream = enforcement === "audit" && api.streams;
          const scan = "everything";
          return { id, api, place, stream, enforcement, scan, caller, external: true };
        }),
      ),
    );
  const seen = useTable(() => {
    const files: Record<string, string> = {};
    for (const vendor of DIALECTS) {
      for (const source of SOURCES) {
        for (const enforcement of ENFORCEMENTS) {
          const name = nameOf(vendor, source, enforcement);
          const guards = [{ binding: enforcement, scan: SCAN_ALL }];
          const ofProvider = source === "ModelProvider" ? { guards } : {};
          files[`provider-${name}.yaml`] = providerYaml(name, vendors[vendor] as Vendor, {
            spec: { ...ALLOWED, externalAccess: { enabled: true, ...ofProvider } },
          });
          const ofKey = source === "AccessKey" ? { guards } : {};
          files[`key-${name}.yaml`] = accessKeyYaml(name, name, ofKey);
        }
      }
    }
    return {
      files,
      rows: SOURCES.flatMap(rowsOf),
      access: async ({ api, caller }) => ({ token: rawKey(caller), model: MODELS[api.vendor] }),
    };
  });

  describe.each(SOURCES)("guards of the %s", (source) => {
    test.each(titled(rowsOf(source)))("%s", (_title, row) => expectRow(row, seen(row)));
  });
});
