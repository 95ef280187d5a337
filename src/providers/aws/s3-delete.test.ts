/** The keys of a request that deletes objects of S3. */
import { describe, expect, test } from "vitest";
import { deletedObjects } from "./s3-delete.ts";

const NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"';

function keysOf(inner: string): string[] | undefined {
  const objects = deletedObjects(Buffer.from(`<Delete>${inner}</Delete>`));
  return objects?.map(({ key, versioned }) => (versioned ? `${key} (a version)` : key));
}
const object = (inner: string): string => `<Object>${inner}</Object>`;
const KEY = object("<Key>a</Key>");

describe("keys", () => {
  test.each<[name: string, inner: string, keys: string[]]>([
    ["one", KEY, ["a"]],
    ["several", `${KEY}${object("<Key>b/c</Key>")}`, ["a", "b/c"]],
    ["of a version", object("<Key>a</Key><VersionId>1</VersionId>"), ["a (a version)"]],
    ["of an empty version", object("<Key>a</Key><VersionId/>"), ["a (a version)"]],
    [
      "of an empty version, in two tags",
      object("<VersionId></VersionId><Key>a</Key>"),
      ["a (a version)"],
    ],
    [
      "with conditions",
      object("<Key>a</Key><ETag>e</ETag><Size>1</Size><LastModifiedTime/>"),
      ["a"],
    ],
    ["without an answer", `<Quiet>true</Quiet>${KEY}`, ["a"]],
    ["with space between tags", ` \n${object(" <Key>a</Key> \n")} `, ["a"]],
    ["with entities", object("<Key>&amp;&lt;&gt;&quot;&apos;&#65;&#x42;</Key>"), ["&<>\"'AB"]],
    ["beyond the first plane", object("<Key>&#x1F600;</Key>"), ["\u{1F600}"]],
    ["at the end of Unicode", object("<Key>&#x10FFFF;</Key>"), ["\u{10FFFF}"]],
    [
      "of an empty version, with space after it",
      object("<Key>a</Key><VersionId/> \n"),
      ["a (a version)"],
    ],
    ["at the borders of surrogates", object("<Key>&#xD7FF;&#xE000;</Key>"), ["\uD7FF\uE000"]],
  ])("%s", (_name, inner, keys) => {
    expect(keysOf(inner)).toEqual(keys);
  });

  test.each([
    `<Delete ${NAMESPACE}>`,
    '<?xml version="1.0"?><Delete>',
    `\uFEFF<?xml version='1.0' encoding='utf-8'?>\n<Delete ${NAMESPACE} >`,
  ])("after the head %s", (head) => {
    expect(deletedObjects(Buffer.from(`${head}${KEY}</Delete>`))).toEqual([
      { key: "a", versioned: false },
    ]);
  });
});

describe("what S3 might read in another way is not understood", () => {
  test.each<[name: string, inner: string]>([
    ["no object", ""],
    ["an object without a key", object("")],
    ["an object with an empty key", object("<Key></Key>")],
    ["an object with an empty key, in one tag", object("<Key/>")],
    ["two keys in an object", object("<Key>a</Key><Key>b</Key>")],
    ["two keys, one of them empty", object("<Key>a</Key><Key/>")],
    ["two versions of an object", object("<Key>a</Key><VersionId>1</VersionId><VersionId/>")],
    ["a key outside of an object", "<Key>a</Key>"],
    ["an object in an object", object(object("<Key>a</Key>"))],
    ["a key in a key", object("<Key><Key>a</Key></Key>")],
    ["a tag that closes another", "<Object><Key>a</Object></Key>"],
    ["another tag", `${KEY}<Other>x</Other>`],
    ["an attribute", '<Object a="b"><Key>a</Key></Object>'],
    ["a comment", `${KEY}<!-- x -->`],
    ["a part of CDATA", object("<Key><![CDATA[a]]></Key>")],
    ["text in an object", object("x<Key>a</Key>")],
    ["text after a key", object("<Key>a</Key>x")],
    ["text after an empty tag", object("<Key>a</Key><ETag/>x")],
    ["text after an object", `${KEY}x`],
    ["an unknown entity", object("<Key>&nbsp;a</Key>")],
    ["an unknown entity in a version", object("<Key>a</Key><VersionId>&nbsp;</VersionId>")],
    ["an unknown entity in Quiet", `<Quiet>&nbsp;</Quiet>${KEY}`],
    ["an ampersand", object("<Key>a&b</Key>")],
    ["a surrogate", object("<Key>&#xD800;</Key>")],
    ["the last surrogate", object("<Key>&#xDFFF;</Key>")],
    ["beyond Unicode", object("<Key>&#x110000;</Key>")],
    ["a control character", object("<Key>a&#10;b</Key>")],
    ["space before a key", object("<Key> a</Key>")],
    ["space after a key", object("<Key>a </Key>")],
    ["1001 objects", KEY.repeat(1_001)],
  ])("%s", (_name, inner) => {
    expect(keysOf(inner)).toBeUndefined();
  });

  test("1000 objects are", () => {
    expect(keysOf(KEY.repeat(1_000))).toHaveLength(1_000);
  });

  test.each<[name: string, body: string | Buffer]>([
    ["another document", `<Other>${KEY}</Other>`],
    ["another namespace", `<Delete xmlns="x">${KEY}</Delete>`],
    ["another encoding", `<?xml version="1.0" encoding="latin1"?><Delete>${KEY}</Delete>`],
    ["a document type", `<!DOCTYPE x><Delete>${KEY}</Delete>`],
    ["no end", `<Delete>${KEY}`],
    ["more after the end", `<Delete>${KEY}</Delete><Delete>${KEY}</Delete>`],
    ["text after the end", `<Delete>${KEY}</Delete>x`],
    ["text before the beginning", `x<Delete>${KEY}</Delete>`],
    [
      "bytes that are not UTF-8",
      Buffer.from(`<Delete>${KEY.replace("a", "\xff")}</Delete>`, "latin1"),
    ],
    ["nothing", ""],
  ])("%s", (_name, body) => {
    expect(deletedObjects(Buffer.from(body))).toBeUndefined();
  });
});
