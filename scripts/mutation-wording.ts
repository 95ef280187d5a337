/**
 * A plugin of Stryker that leaves the wording of messages alone. A person reviews the messages on
 * one page (`src/messages.golden.test.ts`), which no mutation run reads. Wording is a text of
 * several words that is passed to what speaks to people, or one that reads as a sentence.
 * Everything else that is a string is mutated: names, codes, headers, paths, regular expressions.
 */
import { declareValuePlugin, PluginKind } from "@stryker-mutator/api/plugin";
import type { Ignorer, NodePath } from "@stryker-mutator/api/ignore";

/** The part of Babel's paths that is used here. */
interface BabelPath extends NodePath {
  readonly node: BabelNode;
  readonly key: string | number | null;
  readonly listKey?: string;
  readonly parentPath: BabelPath | null;
}

interface BabelNode {
  readonly type: string;
  readonly value?: unknown;
  readonly operator?: string;
  readonly name?: string;
  readonly id?: { readonly name?: string };
  readonly quasis?: readonly { readonly value: { readonly cooked?: string } }[];
  readonly callee?: BabelNode;
  readonly object?: BabelNode;
  readonly property?: BabelNode;
  readonly key?: BabelNode;
}

/** Functions, methods and classes whose texts people read. */
const SPEAKING = new RegExp(
  "(?:Error|Refusal)$|^(?:" +
    "publicError|refuse|denied|refused|report|info|warn|error|" +
    "doubt|doubtful|malformed|missing|readToken|unresolved|unscopable|unusable|wrong|" +
    "Fault|Unjudged)$",
);

/** Members and variables whose texts people read. */
const DESCRIBING = new Set(["help", "hint", "message", "note", "reason"]);

/** Nodes through which a text reaches the call that it is an argument of. */
const PASSING = new Set([
  "BinaryExpression",
  "ConditionalExpression",
  "LogicalExpression",
  "TemplateLiteral",
]);

/** Operators whose operand is compared, and read by no person. */
const COMPARING = new Set(["===", "!==", "<", ">", "<=", ">=", "in"]);

/** Words in a row, and a word that only sentences have: no name, code, header or path has both. */
const IN_A_ROW = /(?:^|[\s{}(])[a-z'`]+,? [a-z'`]+,? [a-z'`]+(?![\w-])/i;
const OF_SENTENCES =
  /\b(?:an?|and|are|be|belongs|by|cannot|did|for|has|have|in|is|it|its|may|must|no|not|of|or|that|the|to|was|were|with)\b/i;

const wording: Ignorer = {
  shouldIgnore(path: NodePath): string | undefined {
    const start = path as BabelPath;
    const text = textOf(start.node);
    if (text === undefined || !/[a-z{}]\S*\s+\S*[a-z{}]/i.test(text)) return undefined;
    const sentence = !text.includes("\n") && IN_A_ROW.test(text) && OF_SENTENCES.test(text);
    let at = start;
    while (at.parentPath !== null && PASSING.has(at.parentPath.node.type)) {
      if (COMPARING.has(at.parentPath.node.operator ?? "")) return undefined;
      at = at.parentPath;
    }
    if (!isSaid(at) && !(sentence && !isUsed(at))) return undefined;
    return "It is the wording of a message.";
  },
};

/** Returns the text of a literal, with `{}` for each of its expressions. */
function textOf({ type, value, quasis }: BabelNode): string | undefined {
  if (type === "StringLiteral") return String(value);
  if (type !== "TemplateLiteral" || quasis === undefined) return undefined;
  const text = quasis.map(({ value: { cooked } }) => cooked ?? "").join("{}");
  return /[a-z]\s+[a-z{]/i.test(text) ? text : undefined;
}

/** Whether people read what is passed there. */
function isSaid({ parentPath, listKey }: BabelPath): boolean {
  const parent = parentPath?.node;
  if (parent?.type === "ObjectProperty") return DESCRIBING.has(parent.key?.name ?? "");
  if (parent?.type === "VariableDeclarator") return DESCRIBING.has(parent.id?.name ?? "");
  if (parent?.type !== "CallExpression" && parent?.type !== "NewExpression") return false;
  if (listKey !== "arguments") return false;
  const { callee } = parent;
  return SPEAKING.test(callee?.name ?? callee?.property?.name ?? callee?.property?.id?.name ?? "");
}

/** Whether code uses the parts of a text, such as a list of names: `"a b c".split(" ")`. */
function isUsed({ parentPath, key }: BabelPath): boolean {
  return parentPath?.node.type === "MemberExpression" && key === "object";
}

export const strykerPlugins = [declareValuePlugin(PluginKind.Ignore, "wording", wording)];
