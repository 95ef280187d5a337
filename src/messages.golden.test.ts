/**
 * Every message that a user can see, on one page: `testdata/messages.txt`. `UPDATE_GOLDEN=1` writes
 * the page anew. A message whose wording changes is reviewed there.
 *
 * Collected are the texts of errors and refusals, of log lines and of the statuses of objects, with
 * `{}` for what is filled in. Two kinds of errors are left out: `Error`, `RangeError`, `TypeError`
 * and `WireError` are defects of the program or of its peer, and show no user what to do.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { parseAst } from "vite";
import { expect, test } from "vitest";
import { Goldens } from "./platform/testing-goldens.ts";

const DEFECTS = new Set(["Error", "RangeError", "TypeError", "WireError", "AggregateError"]);

/** Functions whose texts reach users. */
const SPEAKING = new Set(["publicError", "refuse", "denied", "refused", "report", "warn"]);
const LOG_METHODS = new Set(["info", "warn", "error"]);

interface Node {
  readonly type: string;
  readonly [member: string]: unknown;
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as Node).type === "string";

/** Returns the name of an identifier, or "" for any other node. */
function nameOf(node: unknown): string {
  return isNode(node) && typeof node["name"] === "string" ? node["name"] : "";
}

/** Returns the name of the error, function or log method that a call makes or calls. */
function speaker(node: Node): string | undefined {
  const callee = node["callee"];
  if (!isNode(callee)) return undefined;
  const name = nameOf(callee);
  if (node.type === "NewExpression") {
    return /(?:Error|Refusal)$/.test(name) && !DEFECTS.has(name) ? name : undefined;
  }
  if (node.type !== "CallExpression") return undefined;
  if (SPEAKING.has(name)) return name;
  if (callee.type !== "MemberExpression") return undefined;
  const object = callee["object"];
  const owner = nameOf(
    isNode(object) && object.type === "MemberExpression" ? object["property"] : object,
  );
  const method = nameOf(callee["property"]);
  return /^#?log$/.test(owner) && LOG_METHODS.has(method) ? `log.${method}` : undefined;
}

/** Returns a text as its reader sees it; undefined where an argument is no text, or only a code. */
function textOf(node: Node): string | undefined {
  if (node.type === "Literal" && typeof node["value"] === "string") return node["value"];
  if (node.type === "TemplateLiteral") {
    const quasis = node["quasis"] as { readonly value: { readonly cooked: string } }[];
    return quasis.map(({ value }) => value.cooked).join("{}");
  }
  if (node.type === "BinaryExpression" && node["operator"] === "+") {
    const left = textOf(node["left"] as Node);
    const right = textOf(node["right"] as Node);
    return left === undefined && right === undefined
      ? undefined
      : `${left ?? "{}"}${right ?? "{}"}`;
  }
  return undefined;
}

/** Returns the texts of an argument; of a condition, those of both sides. */
function textsOf(node: Node): string[] {
  if (node.type === "ConditionalExpression") {
    return [...textsOf(node["consequent"] as Node), ...textsOf(node["alternate"] as Node)];
  }
  const text = textOf(node);
  // A message has several words; a single one is a code or the name of a field.
  return text === undefined || !/\s/.test(text.trim()) ? [] : [text];
}

function visit(node: Node, found: (who: string, text: string) => void): void {
  const who = speaker(node);
  if (who !== undefined) {
    for (const argument of node["arguments"] as Node[]) {
      for (const text of textsOf(argument)) found(who, text);
    }
  }
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (isNode(child)) visit(child, found);
    }
  }
}

/** Returns the messages of a module: `<who says it>: <text>`. */
function messagesIn(source: string): string[] {
  const messages: string[] = [];
  visit(parseAst(source, { lang: "ts" }) as unknown as Node, (who, text) =>
    messages.push(`${who}: ${text.replaceAll("\n", "\\n")}`),
  );
  return messages;
}

function collect(): string {
  const files = readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !/\.test\.ts$|^gen\/|testing/.test(file))
    .sort();
  const sections = files.map((file) => {
    const messages = messagesIn(readFileSync(path.join(import.meta.dirname, file), "utf8"));
    return messages.length === 0
      ? ""
      : `${file}\n${messages.map((line) => `  ${line}\n`).join("")}`;
  });
  return sections.filter((section) => section !== "").join("\n");
}

test("the messages that users see are those that were reviewed", () => {
  new Goldens(path.join(import.meta.dirname, "testdata")).check("messages.txt", collect());
});

test("messages are found wherever they are written", () => {
  expect(
    messagesIn(`
      throw new CliError(\`There is no \${kind} here.\`, 2);
      const x = () => refuse("not_found", found ? "Use POST here." : "No such" + " path.");
      this.#log.warn({ a: 1 }, "not in use as written");
      throw new TypeError("a defect of ours");
    `),
  ).toEqual([
    "CliError: There is no {} here.",
    "refuse: Use POST here.",
    "refuse: No such path.",
    "log.warn: not in use as written",
  ]);
});
