import { parseDocument } from "yaml";
import { describe, expect, test } from "vitest";
import { mergePatch, patchDocument } from "./merge-patch.ts";

/** RFC 7396, appendix A. */
describe("the specification's cases", () => {
  test.each<[string, string, string]>([
    [`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`],
    [`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`],
    [`{"a":"b"}`, `{"a":null}`, `{}`],
    [`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`],
    [`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`],
    [`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`],
    [`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`],
    [`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`],
    [`["a","b"]`, `["c","d"]`, `["c","d"]`],
    [`{"a":"b"}`, `["c"]`, `["c"]`],
    [`{"a":"foo"}`, `null`, `null`],
    [`{"a":"foo"}`, `"bar"`, `"bar"`],
    [`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`],
    [`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`],
    [`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`],
  ])("%s patched with %s is %s", (target, patch, result) => {
    expect(mergePatch(JSON.parse(target), JSON.parse(patch))).toEqual(JSON.parse(result));
    expect(patchDocument(parseDocument(target), JSON.parse(patch)).toJS()).toEqual(
      JSON.parse(result),
    );
  });
});

test("a member called __proto__ is a member", () => {
  const patched = mergePatch({}, JSON.parse(`{"__proto__":{"polluted":true}}`)) as object;
  expect(Object.keys(patched)).toEqual(["__proto__"]);
  expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
});

test("comments and the order of fields stay", () => {
  const document = parseDocument("# top\na: 1 # first\nb:\n  # inside\n  c: 2\n  d: 3\n");
  expect(patchDocument(document, { b: { c: 5, e: [1] }, a: 1 }).toString()).toBe(
    "# top\na: 1 # first\nb:\n  # inside\n  c: 5\n  d: 3\n  e:\n    - 1\n",
  );
});

test.each([
  [
    "an anchored mapping that others use",
    "a: &x {k: 1}\nb: *x\n",
    { a: { k: 2 } },
    { a: { k: 2 }, b: { k: 1 } },
  ],
  ["an alias", "a: &x {k: 1}\nb: *x\n", { b: { k: 2 } }, { a: { k: 1 }, b: { k: 2 } }],
  ["an anchor that goes", "a: &x {k: 1}\nb: *x\n", { a: null }, { b: { k: 1 } }],
])("%s: the plain result counts", (_name, text, patch, result) => {
  const patched = patchDocument(parseDocument(text), patch);
  expect(parseDocument(patched.toString()).toJS()).toEqual(result);
});
