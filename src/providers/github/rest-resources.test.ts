/** The reach of operations that the tables do not know, or know from another path. */
import { describe, expect, test } from "vitest";
import type { ServiceResource } from "../contract.ts";
import type { RouteMatch } from "../route-trie.ts";
import { request } from "../testing.ts";
import { REACHES_FURTHER } from "./rest-reach.ts";
import { resourcesOf } from "./rest-resources.ts";

function match(
  operation: string,
  template: string,
  parameters: Readonly<Record<string, readonly string[]>>,
): RouteMatch {
  return {
    route: { method: "GET", template, category: "x", subcategory: "x", operation },
    parameters: new Map(
      Object.entries(parameters).map(([name, texts]) => [
        name,
        texts.map((text) => ({ text, slashed: false })),
      ]),
    ),
  };
}

const NAMED = { owner: ["o"], repo: ["r"] };

function told(found: readonly ServiceResource[] | undefined): string | undefined {
  return found?.map((each) => (each.kind === "scoped" ? each.value : each.kind)).join("+");
}

function resources(of: RouteMatch, query = ""): string | undefined {
  return told(resourcesOf(of, request(`GET https://api.github.com/x${query}`)));
}

const IN_REPOSITORY = "/repos/{owner}/{repo}/x";

test.each([
  ["issues/get", IN_REPOSITORY, "o/r"],
  ["repos/get", "/repos/{owner}/{repo}", "o/r"],
  ["issues/operation-of-tomorrow", IN_REPOSITORY, "o/r+unscopable"],
  ["constructor", IN_REPOSITORY, "o/r+unscopable"],
  ["issues/get", "/orgs/{org}/teams/{team}/repos/{owner}/{repo}", "o/r+unscopable"],
  ["issues/get", "/x/repos/{owner}/{repo}", "o/r+unscopable"],
])("%s at %s is about %s", (operation, template, expected) => {
  expect(resources(match(operation, template, NAMED))).toBe(expected);
});

test("an operation that reaches further says why", () => {
  const found = resourcesOf(
    match("issues/get-parent", IN_REPOSITORY, NAMED),
    request("GET https://api.github.com/x"),
  );
  expect(found?.at(-1)).toEqual({
    kind: "unscopable",
    reason: REACHES_FURTHER["issues/get-parent"],
  });
});

describe("a name that is not whole", () => {
  test.each<[Readonly<Record<string, readonly string[]>>, string | undefined]>([
    [{ owner: ["o"] }, "unscopable"],
    [{ repo: ["r"] }, "unscopable"],
    [{}, "unscopable"],
    [{ owner: [], repo: ["r"] }, undefined],
    [{ owner: ["o"], repo: [] }, undefined],
    [{ owner: ["o"], repo: [".."] }, undefined],
    [{ template_owner: ["o"], template_repo: ["r"] }, "o/r"],
  ])("%j is %s", (parameters, expected) => {
    expect(resources(match("issues/get", IN_REPOSITORY, parameters))).toBe(expected);
  });
});

describe("a branch of another account", () => {
  test.each([
    "ref",
    "branch",
    "basehead",
    "commit_sha",
    "file_sha",
    "sha",
    "tag",
    "tag_sha",
    "tree_sha",
  ])("by the parameter %s", (name) => {
    const at = (value: string): string | undefined =>
      resources(match("repos/get-content", IN_REPOSITORY, { ...NAMED, [name]: ["a", value] }));
    expect(at("u:dev")).toBe("o/r+unscopable");
    expect(at("dev")).toBe("o/r");
    const plain = match("repos/get-content", IN_REPOSITORY, NAMED);
    expect(resources(plain, `?${name}=dev&${name}=u%3Adev`)).toBe("o/r+unscopable");
  });
});
