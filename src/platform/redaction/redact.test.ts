import { createHash, createHmac, generateKeyPairSync, randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { expectLinear } from "../testing-work.ts";
import { redact, redactPart } from "./redact.ts";

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const pem = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
const b64 = (text: string) => Buffer.from(text).toString("base64url");
const signature = createHmac("sha256", "k").update("x").digest("base64url");
const jwt = `${b64('{"alg":"HS256"}')}.${b64('{"sub":"1234567890"}')}.${signature}`;

/** One secret of each kind. */
const SECRETS: readonly (readonly [kind: string, secret: string])[] = [
  ["email", "ada.lovelace+test@mail.example.co.uk"],
  ["phone", "+49 170 1234567"],
  ["phone", "(555) 010-9999"],
  ["phone", "555-010-9999"],
  ["phone", "0170-1234567"],
  ["card", "4111 1111 1111 1111"],
  ["card", "5500-0000-0000-0004"],
  ["card", "378282246310005"],
  ["jwt", jwt],
  ["pem", pem.trim()],
  ["pem", pem.trim().replaceAll("\n", String.raw`\n`)],
  ["hex", createHash("md5").update("x").digest("hex")],
  ["hex", randomBytes(32).toString("hex").toUpperCase()],
  ["base64", randomBytes(48).toString("base64")],
  ["base64", randomBytes(64).toString("base64url")],
  ["api-key", `sk-ant-api03-${"aB3_".repeat(10)}`],
  ["api-key", `sk-proj-${"x9Y".repeat(15)}`],
  ["api-key", `ghp_${"a1B2".repeat(9)}`],
  ["api-key", `AKIA${"ABCD1234".repeat(2)}`],
  ["api-key", `AIza${"Sy1-_".repeat(7)}`],
  ["api-key", `xoxb-123456789012-${"aBcD".repeat(5)}`],
  ["api-key", `svc_${"aZ9".repeat(14)}x`],
];

const PLACES: readonly (readonly [string, (secret: string) => string])[] = [
  ["alone", (secret) => secret],
  ["in prose", (secret) => `Please use ${secret}, and tell nobody.`],
  ["at the end of a sentence", (secret) => `It is ${secret}.`],
  ["in JSON", (secret) => JSON.stringify({ a: secret, b: [secret] })],
  ["in a header", (secret) => `Authorization: Bearer ${secret}\r\nX: 1`],
  ["as an assignment", (secret) => `TOKEN=${secret}`],
  ["in quotes", (secret) => `key='${secret}'`],
  ["between lines", (secret) => `first\n${secret}\nlast`],
];

describe.each(PLACES)("%s", (_, place) => {
  test.each(SECRETS)("%s %#", (kind, secret) => {
    const redacted = redact(place(secret));
    expect(redacted).toContain(`[REDACTED:${kind}]`);
    const body = secret.startsWith("-----") ? (secret.split(/\n|\\n/)[1] ?? "") : secret;
    expect(redacted).not.toContain(body);
  });
});

test("in a URL", () => {
  const key = `AIza${"Sy1-_".repeat(7)}`;
  expect(redact(`https://api.example.com/v1?key=${key}&a=b`)).toBe(
    "https://api.example.com/v1?key=[REDACTED:api-key]&a=b",
  );
  const token = randomBytes(20).toString("hex");
  expect(redact(`https://x.example/hooks/${token}/run`)).toBe(
    "https://x.example/hooks/[REDACTED:hex]/run",
  );
});

test.each([
  "The year 2026 has 365 days and 8,760 hours.",
  "2026-11-22T21:45:00.000Z and 2026-11-22",
  "v1.2.3-beta.4 of package@1.2.3 (10.0.0.1:8080)",
  "https://github.com/example/project/blob/main/src/platform/json/scan.ts#L10-L20",
  "/usr/local/lib/node_modules/@modelcontextprotocol/server-everything/dist/index.js",
  "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
  "a_very_long_identifier_in_snake_case_of_the_application_layer",
  "aVeryLongIdentifierInCamelCase",
  "SHOUTING_CONSTANT_NAME_OF_A_PROGRAM",
  "git commit 9e466e4",
  "1234567890",
  "100 000 000 000 000 kg",
  "user@localhost, and @mention",
  "x = y == z; a += 1",
  "sk-learn and AKIArt",
  "Lorem ipsum dolor sit amet, consectetur adipiscing elit.",
  "-----BEGINNING-----",
])("harmless: %s", (text) => {
  expect(redact(text)).toBe(text);
});

describe("a part of a text", () => {
  const key = `AIza${"Sy1-_".repeat(7)}`;

  test.each([
    ["the part's start cuts a secret", 10, 60],
    ["its end does", 0, 30],
    ["both do", 10, 30],
  ])("%s", (_, start, end) => {
    const text = `ab ${key} ${"words ".repeat(10)}`;
    const part = redactPart(text, start, end);
    expect(part).toContain("[REDACTED:api-key]");
    expect(part.replace("[REDACTED:api-key]", "")).toBe(
      text.slice(start, 3) + text.slice(42, Math.max(end, 42)),
    );
  });

  test("secrets beside it are left out, and do not move it", () => {
    const text = `${key} ${key} the middle ${key}`;
    const start = text.indexOf("the middle");
    expect(redactPart(text, start, start + 10)).toBe("the middle");
  });
});

test("a block of PEM without its end takes its lines, and not the prose behind", () => {
  const lines = pem.trim().split("\n");
  const open = lines.slice(0, -1).join("\n");
  expect(redact(`a\n${open}\nIgnore all of this.`)).toBe("a\n[REDACTED:pem] all of this.");
  expect(redact("-----BEGIN x of a sentence, and -----END it")).toContain("of a sentence");
});

const HOSTILE: readonly string[] = [
  "eyJ-",
  "eyJhbGciOiJIUzI1NiJ9.",
  "a@",
  "a@b.",
  "-----BEGIN ",
  "-----BEGIN A KEY-----",
  "-----BEGIN A KEY-----\n-----END ",
  "-----BEGIN A KEY-----\nAAAA\n",
  "1 ",
  "1\n",
  "4111 ",
  "+1 ",
  "4111111111111111\n",
  "0170 ",
  "AKIA",
  "=",
  "a=",
  "%41",
  "%",
  "((((",
  "A-",
  "sk-",
  "sk-a\n",
  "ghp_a1B2c3\n",
  "aB3dE6gH9\n",
  "a\n",
  "\\n",
  "\\",
  "/",
  "~@",
  "........",
  "a1B2".repeat(20),
];

test.each(HOSTILE)("1 MiB of %j", { timeout: 300_000 }, (part) => {
  expect(redact(part.repeat(1_048_576 / part.length)).length).toBeGreaterThan(0);
});

test.each(HOSTILE)("%j takes time in proportion to the length", { timeout: 300_000 }, (part) => {
  expectLinear((size) => {
    const text = part.repeat(size / part.length);
    return () => redact(text);
  }, 20_000);
});
