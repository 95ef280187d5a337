import { describe, expect, test } from "vitest";
import { apiBaseOf, hostsOf } from "./hosts.ts";

const shown = (enterprise: string | undefined): Record<string, readonly string[]> | undefined => {
  const hosts = hostsOf(enterprise);
  if (hosts === undefined) return undefined;
  const entries = [...hosts].map(([host, surfaces]) => [
    host,
    surfaces.map((surface) =>
      surface.kind === "api"
        ? `api ${surface.prefix} ${surface.graphqlPath}`
        : surface.kind === "uploads"
          ? `uploads ${surface.prefix}`
          : surface.kind,
    ),
  ]);
  return Object.fromEntries(entries) as Record<string, readonly string[]>;
};

test("a token is for github.com, for one enterprise on it, or for one server", () => {
  expect(shown(undefined)).toEqual({
    "api.github.com": ["api  /graphql"],
    "github.com": ["git"],
    "uploads.github.com": ["uploads "],
    "codeload.github.com": ["files"],
    "raw.githubusercontent.com": ["files"],
  });
  expect(shown("octocorp.ghe.com")).toEqual({
    "api.octocorp.ghe.com": ["api  /graphql"],
    "uploads.octocorp.ghe.com": ["uploads "],
    "octocorp.ghe.com": ["git"],
  });
  expect(shown("git.example")).toEqual({
    "git.example": ["api /api/v3 /api/graphql", "uploads /api/uploads", "git"],
  });
});

test.each([
  [undefined, "https://api.github.com"],
  ["octocorp.ghe.com", "https://api.octocorp.ghe.com"],
  ["git.example", "https://git.example/api/v3"],
])("the API of %s is %s", (enterprise, base) => {
  expect(apiBaseOf(enterprise)).toBe(base);
});

describe("no host of an enterprise", () => {
  test.each([
    "github.com",
    "api.github.com",
    "localhost",
    "127.0.0.1",
    "a_b.example",
    "-a.example",
    "a-.example",
    "a..example",
    ".example",
    "git.example.",
    "git.example:443",
    "git.example/x",
    "git.example evil.example",
    `${"a".repeat(64)}.example`,
    `${"a.".repeat(127)}example`,
    "",
  ])("%j", (enterprise) => {
    expect(hostsOf(enterprise)).toBeUndefined();
  });

  test("names may have labels of 63 characters, digits and hyphens", () => {
    for (const host of [`${"a".repeat(63)}.example`, "1.a-b.c3", "a1.example"])
      expect(hostsOf(host), host).toBeDefined();
  });
});
