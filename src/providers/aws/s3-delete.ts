/**
 * Reads the keys of a DeleteObjects request. Its XML is parsed by a grammar much narrower than
 * XML's: no comments, no CDATA, no DOCTYPE, no attributes but `xmlns`. Any other body is not
 * understood, and therefore not permitted.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html
 */

export interface DeletedObject {
  readonly key: string;
  readonly versioned: boolean;
}

const HEAD =
  /^\uFEFF?(?:<\?xml version=["']1\.0["'](?: encoding=["'](?:UTF|utf)-8["'])?\s*\?>)?\s*<Delete(?: xmlns=["']http:\/\/s3\.amazonaws\.com\/doc\/2006-03-01\/["'])?\s*>/;
const TOKEN =
  /\s*(?:<(\/?)(Delete|Object|Quiet|Key|VersionId|ETag|LastModifiedTime|Size)>|<(Key|VersionId|ETag|LastModifiedTime|Size)\/>)([^<]*)/y;
const ENTITY = /&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7})|#x([0-9A-Fa-f]{1,6}));|&/g;
const NAMED: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
};
/** Maximum number of objects that S3 accepts in one request. */
const MAX_OBJECTS = 1000;

/** Returns undefined if S3 might interpret the body differently. */
export function deletedObjects(body: Buffer): readonly DeletedObject[] | undefined {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return undefined;
  }
  const head = HEAD.exec(text);
  if (head === null) return undefined;
  const objects: DeletedObject[] = [];
  const open: string[] = ["Delete"];
  let fields = new Map<string, string>();
  TOKEN.lastIndex = head[0].length;
  while (open.length > 0) {
    const match = TOKEN.exec(text);
    if (match === null) return undefined;
    const [, slash = "", name = match[3] ?? "", , content = ""] = match;
    const parent = open.at(-1) as string;
    if (slash === "/") {
      if (open.pop() !== name) return undefined;
      if (name === "Object") {
        const key = fields.get("Key");
        if (key === undefined || key === "" || objects.length >= MAX_OBJECTS) return undefined;
        objects.push({ key, versioned: fields.has("VersionId") });
      }
      if (content.trim() !== "") return undefined;
      continue;
    }
    if (!CHILDREN[parent]?.includes(name)) return undefined;
    if (name === "Object") fields = new Map();
    if (name === "Object" ? content.trim() !== "" : parent === "Object" && fields.has(name))
      return undefined;
    if (match[3] !== undefined) {
      if (content.trim() !== "") return undefined;
      fields.set(name, "");
      continue;
    }
    if (name !== "Object") {
      const value = unescaped(content);
      if (value === undefined) return undefined;
      if (parent === "Object") fields.set(name, value);
    }
    open.push(name);
  }
  return TOKEN.lastIndex === text.length && objects.length > 0 ? objects : undefined;
}

const CHILDREN: Readonly<Record<string, readonly string[]>> = {
  Delete: ["Object", "Quiet"],
  Object: ["Key", "VersionId", "ETag", "LastModifiedTime", "Size"],
};

function unescaped(text: string): string | undefined {
  let whole = true;
  const value = text.replace(
    ENTITY,
    (_all, named: string | undefined, decimal: string | undefined, hex: string | undefined) => {
      if (named !== undefined) return NAMED[named] as string;
      const code =
        decimal === undefined ? Number.parseInt(hex ?? "", 16) : Number.parseInt(decimal, 10);
      if (Number.isNaN(code) || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        whole = false;
        return "";
      }
      return String.fromCodePoint(code);
    },
  );
  // XML normalises line ends and some readers trim; control characters must not be in an audit
  // record.
  return whole && value === value.trim() && !/\p{Cc}/u.test(value) ? value : undefined;
}
