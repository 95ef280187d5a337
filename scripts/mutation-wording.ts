/**
 * A plugin of Stryker that leaves the wording of messages alone. A person reviews the messages on
 * one page (`src/messages.golden.test.ts`), which no mutation run reads. Everything else that is a
 * string is mutated: names, codes, headers, paths.
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
  readonly name?: string;
  readonly id?: { readonly name?: string };
  readonly quasis?: readonly { readonly value: { readonly cooked?: string } }[];
  readonly callee?: BabelNode;
  readonly object?: BabelNode;
  readonly property?: BabelNode;
  readonly key?: BabelNode;
}

/** Functions and methods whose texts people read. */
const SPEAKING =
  /(?:Error|Refusal)$|^(?:publicError|refuse|denied|refused|report|info|warn|error)$/;

/** Members whose texts people read. */
const DESCRIBING = new Set(["help", "message", "reason"]);

/** Nodes through which a text reaches the call that it is an argument of. */
const PASSING = new Set(["BinaryExpression", "ConditionalExpression", "TemplateLiteral"]);

const wording: Ignorer = {
  shouldIgnore(path: NodePath): string | undefined {
    const start = path as BabelPath;
    if (!hasSeveralWords(start.node)) return undefined;
    let at = start;
    while (at.parentPath !== null && PASSING.has(at.parentPath.node.type)) at = at.parentPath;
    return isSaid(at) ? "It is the wording of a message." : undefined;
  },
};

function hasSeveralWords({ type, value, quasis }: BabelNode): boolean {
  if (type === "StringLiteral") return /\S\s+\S/.test(String(value));
  if (type !== "TemplateLiteral" || quasis === undefined) return false;
  return /[a-z]\s+[a-z{]/i.test(quasis.map(({ value: { cooked } }) => cooked ?? "").join("{}"));
}

function isSaid({ parentPath, listKey }: BabelPath): boolean {
  const parent = parentPath?.node;
  if (parent?.type === "ObjectProperty") return DESCRIBING.has(parent.key?.name ?? "");
  if (parent?.type !== "CallExpression" && parent?.type !== "NewExpression") return false;
  if (listKey !== "arguments") return false;
  const { callee } = parent;
  return SPEAKING.test(callee?.name ?? callee?.property?.name ?? callee?.property?.id?.name ?? "");
}

export const strykerPlugins = [declareValuePlugin(PluginKind.Ignore, "wording", wording)];
