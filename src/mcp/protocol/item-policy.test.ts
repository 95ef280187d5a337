import { describe, expect, test } from "vitest";
import type { ItemLists, McpLists } from "../../policy/snapshot.ts";
import { McpPolicy, NO_LISTS } from "./item-policy.ts";
import type { ItemKind } from "./names.ts";

const lists = (kind: ItemKind, own: Partial<ItemLists>): McpLists => ({
  tools: NO_LISTS,
  prompts: NO_LISTS,
  resources: NO_LISTS,
  [kind]: { ...NO_LISTS, ...own },
});

const tools = (own: Partial<ItemLists>) => lists("tools", own);

describe("lists of the Provider and of the key", () => {
  test("without lists all is open, and nothing need be read", () => {
    const policy = new McpPolicy(tools({}), tools({}));
    expect([policy.isOpen("tools"), policy.deny("tools", "any")]).toEqual([true, undefined]);
  });

  test("a list of one kind does not concern the others", () => {
    const policy = new McpPolicy(lists("prompts", { allowed: [] }));
    expect([policy.isOpen("tools"), policy.isOpen("prompts")]).toEqual([true, false]);
    expect(policy.deny("prompts", "p")).toBe("not-allowed");
  });

  test("denied comes before allowed, and a key only narrows", () => {
    const provider = tools({ allowed: ["a", "b", "c"], denied: ["b"] });
    const policy = new McpPolicy(provider, tools({ allowed: ["a", "b", "d"], denied: ["c"] }));
    expect(["a", "b", "c", "d"].map((name) => policy.deny("tools", name))).toEqual([
      undefined,
      "denied",
      "denied",
      "not-allowed",
    ]);
    expect(new McpPolicy(provider, tools({ denied: ["a"] })).deny("tools", "a")).toBe("denied");
  });

  test("an empty list allows nothing", () => {
    expect(new McpPolicy(tools({ allowed: [] })).deny("tools", "a")).toBe("not-allowed");
  });
});

describe("names that resemble a denied one", () => {
  const policy = new McpPolicy(tools({ denied: ["delete_file"] }));
  test.each([
    "delete_file",
    "Delete_File",
    "DELETE_FILE",
    " delete_file",
    "delete_file\n",
    "delete_file\0",
    "delete\u200B_file",
    "delete\u00AD_file",
    "\uFEFFdelete_file",
    "\u202Edelete_file",
    "\uFF44elete_file",
    "delete\uFE4Dfile",
    "de\u212Aete_file".replace("\u212A", "L"),
    "delete_\uFB01le",
    "d\u0435lete_file",
    "delete_f\u0131le",
    "DELETE_F\u0130LE",
    "delete_fi\uD800le",
    "",
  ])("%j", (name) => {
    expect(policy.deny("tools", name)).toBeDefined();
  });

  test("other names are not concerned", () => {
    for (const name of ["delete_file2", "delete-file", "deletefile", "x/delete_file"])
      expect(policy.deny("tools", name)).toBeUndefined();
  });

  test("a name of other characters must be allowed by name", () => {
    const own = new McpPolicy(tools({ allowed: ["löschen"], denied: ["delete_file"] }));
    expect(own.deny("tools", "löschen")).toBeUndefined();
    expect(own.deny("tools", "lo\u0308schen")).toBe("not-allowed");
    expect(policy.deny("tools", "löschen")).toBe("unclear-name");
  });
});

describe("an allowed name is the same bytes", () => {
  const policy = new McpPolicy(tools({ allowed: ["read"] }));
  test.each(["Read", "read ", "\uFF52ead", "re\u200Bad", "read\0"])("%j", (name) => {
    expect(policy.deny("tools", name)).toBe("not-allowed");
  });
});

describe("URIs of resources", () => {
  const denied = new McpPolicy(lists("resources", { denied: ["file:///secret/*"] }));
  test.each([
    "file:///secret/a",
    "FILE:///secret/a",
    "file:///SECRET/a",
    "file:///%73ecret/a",
    "file:///%2573ecret/a",
    "file:///x/../secret/a",
    "file:///x/%2e%2e/secret/a",
    "file:///x/%2E./secret/a",
    "file:///./secret/a",
    String.raw`file:\\\secret\a`,
    "file:///secret%2Fa",
    "file://localhost/../secret/a",
    "file:///se\u200Bcret/a",
    "file:///\uFF53ecret/a",
  ])("denied: %j", (uri) => {
    expect(denied.deny("resources", uri)).toBe("denied");
  });

  test("an allowed URI must be inside in every reading", () => {
    const policy = new McpPolicy(lists("resources", { allowed: ["file:///public/*"] }));
    expect(policy.deny("resources", "file:///public/a%20b.txt")).toBeUndefined();
    for (const uri of [
      "file:///public/../secret",
      "file:///public/%2e%2e/secret",
      "file:///public/%252e%252e/secret",
      String.raw`file:///public\..\secret`,
      "file:///publicity",
      "http://public/",
    ])
      expect(policy.deny("resources", uri)).toBe("not-allowed");
  });
});
