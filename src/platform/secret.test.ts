import { format, inspect } from "node:util";
import { Writable } from "node:stream";
import { pino } from "pino";
import { expect, test } from "vitest";
import { Secret } from "./secret.ts";

const VALUE = "sk-the-value";

test.each<[string, (secret: Secret) => string]>([
  ["a string", (secret) => String(secret)],
  ["a template", (secret) => `${JSON.stringify({ secret })}${secret.toString()}`],
  ["JSON", (secret) => JSON.stringify({ deep: [secret] })],
  ["inspect", (secret) => inspect({ deep: { secret } }, { depth: 9, showHidden: true })],
  ["console", (secret) => format("%s %o %j", secret, secret, secret)],
  [
    "its own keys",
    (secret) => JSON.stringify([Object.entries(secret), Object.getOwnPropertyNames(secret)]),
  ],
  ["a clone", (secret) => inspect(structuredClone(secret))],
  ["an error", (secret) => inspect(new Error(`refused ${String(secret)}`, { cause: secret }))],
])("is not shown by %s", (_name, show) => {
  expect(show(new Secret(VALUE))).not.toContain(VALUE);
});

test("is not shown by the log", () => {
  const lines: string[] = [];
  const destination = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(chunk.toString());
      done();
    },
  });
  const secret = new Secret(VALUE);
  pino({}, destination)
    .child({ bound: secret })
    .info(
      { secret, deep: { list: [secret] }, error: new Error("x", { cause: secret }) },
      "said %s",
      secret,
    );
  expect(lines.join("")).toContain("[redacted]");
  expect(lines.join("")).not.toContain(VALUE);
});

test("is given to who asks", () => {
  expect(new Secret(VALUE).reveal()).toBe(VALUE);
});
