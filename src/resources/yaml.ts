/**
 * Parses YAML (and JSON, which it includes) with positions, and with errors that quote nothing of
 * the text.
 */
import type { Document, ErrorCode, Node } from "yaml";
import { isMap, isScalar, isSeq, parseAllDocuments } from "yaml";

export interface YamlDocument {
  readonly document: Document.Parsed;
  /** Line at which its content begins, from 1. */
  readonly line: number;
}

/**
 * Messages by the parser's error code. Its own messages quote the source, which may be a secret.
 * Codes: https://eemeli.org/yaml/#errors
 */
const SYNTAX_MESSAGES: Readonly<Partial<Record<ErrorCode, string>>> = {
  ALIAS_PROPS: "an alias cannot have an anchor or tag",
  BAD_ALIAS:
    "an alias names an anchor that is not defined before it; quote a value that begins with '*'",
  BAD_DIRECTIVE: "a directive (%) is malformed; quote a value that begins with '%'",
  BAD_DQ_ESCAPE: "a double-quoted text has an invalid escape",
  BAD_INDENT: "the indentation is wrong, or a bracket is not closed",
  BAD_SCALAR_START: "a plain text begins with a character that must be quoted",
  BLOCK_AS_IMPLICIT_KEY:
    "a nested mapping is on one line with its key; is a ': ' in an unquoted text?",
  BLOCK_IN_FLOW: "a block collection is inside [] or {}",
  DUPLICATE_KEY: "a key occurs twice in one mapping",
  KEY_OVER_1024_CHARS: "a key is longer than 1024 characters",
  MISSING_CHAR: "a character is missing: a closing quote, bracket, comma or colon",
  MULTILINE_IMPLICIT_KEY: "a key is spread over several lines; is a ':' missing?",
  MULTIPLE_DOCS: "a document ends in the middle; separate documents with ---",
  TAB_AS_INDENT: "a tab is used as indentation; use spaces",
  TAG_RESOLVE_FAILED: "a tag (!) is unknown; quote a value that begins with '!'",
  UNEXPECTED_TOKEN: "unexpected content; is the indentation correct?",
};

export function syntaxMessage(code: ErrorCode): string {
  return SYNTAX_MESSAGES[code] ?? "not valid YAML";
}

/**
 * Splits and parses a text. Never throws; each document contains its own errors, including unknown
 * tags.
 */
export function readDocuments(text: string): readonly YamlDocument[] {
  const parsed = parseAllDocuments(text, {
    prettyErrors: false,
    logLevel: "silent",
    keepSourceTokens: false,
    uniqueKeys: true,
  });
  if (!Array.isArray(parsed)) return [];
  const documents: YamlDocument[] = [];
  let line = 1;
  let offset = 0;
  for (const document of parsed as Document.Parsed[]) {
    document.errors.push(
      ...(document.warnings.filter((warning) => warning.code === "TAG_RESOLVE_FAILED") as never[]),
    );
    const start = document.contents?.range[0] ?? document.range[0];
    line += newlines(text, offset, start);
    offset = Math.max(offset, start);
    documents.push({ document, line });
  }
  return documents;
}

/** Line of an offset, from 1. */
export function lineAt(text: string, offset: number): number {
  return 1 + newlines(text, 0, offset);
}

/** Offset of the field at `path`, or of its nearest existing ancestor. */
export function offsetOf(document: Document.Parsed, path: readonly PropertyKey[]): number {
  let node: unknown = document.contents;
  let offset = document.contents?.range[0] ?? document.range[0];
  for (const part of path) {
    let next: unknown;
    if (isMap(node)) {
      const pair = node.items.find(
        (item) => isScalar(item.key) && String(item.key.value) === String(part),
      );
      if (pair === undefined) return offset;
      offset = (pair.key as Node).range?.[0] ?? offset;
      next = pair.value;
    } else if (isSeq(node) && typeof part === "number") {
      next = node.items[part];
      offset = (next as Node | undefined)?.range?.[0] ?? offset;
    } else {
      return offset;
    }
    node = next;
  }
  return offset;
}

function newlines(text: string, from: number, to: number): number {
  let count = 0;
  for (let at = text.indexOf("\n", from); at !== -1 && at < to; at = text.indexOf("\n", at + 1))
    count += 1;
  return count;
}
