/**
 * An esbuild plugin for tables in JSON: their long texts stay compressed in memory until they are
 * read. A text is unpacked each time that its property is read, so that a reader keeps what it
 * makes of it.
 */
import { readFileSync } from "node:fs";
import { brotliCompressSync } from "node:zlib";

/** Texts below this length, and lists below four times of it, are left as they are. */
const LONG_CHARS = 512;

const UNPACK = `import { brotliDecompressSync } from "node:zlib";
const unpack = (packed) => brotliDecompressSync(Buffer.from(packed, "base64")).toString("utf8");
`;

/** @param filter the files to pack */
export function packedTables(filter) {
  return {
    name: "packed-tables",
    setup(build) {
      build.onLoad({ filter }, ({ path }) => {
        const table = JSON.parse(readFileSync(path, "utf8"));
        return { contents: `${UNPACK}export default ${expression(table)};`, loader: "js" };
      });
    },
  };
}

/** Returns the expression of a value that is not packed itself. */
function expression(value) {
  if (Array.isArray(value)) return `[${value.map(expression).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => {
    const key = JSON.stringify(name);
    const read = unpacking(member);
    return read === undefined ? `${key}:${expression(member)}` : `get ${key}(){return ${read}}`;
  });
  return `{${members.join(",")}}`;
}

/** Returns the expression that unpacks a value; undefined for one that is left as it is. */
function unpacking(value) {
  if (typeof value === "string")
    return value.length < LONG_CHARS ? undefined : `unpack(${pack(value)})`;
  const isList =
    typeof value === "object" &&
    value !== null &&
    Object.values(value).every((member) => typeof member === "string");
  const text = isList ? JSON.stringify(value) : "";
  return text.length < 4 * LONG_CHARS ? undefined : `JSON.parse(unpack(${pack(text)}))`;
}

function pack(text) {
  return JSON.stringify(brotliCompressSync(Buffer.from(text)).toString("base64"));
}
