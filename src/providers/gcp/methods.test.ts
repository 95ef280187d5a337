/** Which method of Google's APIs a path is. */
import { describe, expect, test } from "vitest";
import { isKnownHost, matchMethods } from "./methods.ts";

const COMPUTE = "compute.googleapis.com";

function match(host: string, method: string, path: string, verbs?: boolean): object[] {
  return [...matchMethods(host, method, path.split("/"), verbs)];
}

describe("a path that fits several templates", () => {
  test.each([
    [
      "a literal last segment",
      "compute/v1/projects/p/global/backendBuckets/listUsable",
      "compute.backendBuckets.listUsable",
    ],
    [
      "any other last segment",
      "compute/v1/projects/p/global/backendBuckets/mine",
      "compute.backendBuckets.get",
    ],
  ])("is the most specific one: %s", (_name, path, action) => {
    expect(match(COMPUTE, "GET", path)).toEqual([{ action, labels: { project: "p" } }]);
  });
});

describe("a verb after a colon", () => {
  const topic = "v1/projects/p/topics/t";

  test("is part of the method, and not of the name", () => {
    expect(match("pubsub.googleapis.com", "POST", `${topic}:publish`)).toEqual([
      { action: "pubsub.topics.publish", labels: { project: "p" } },
    ]);
  });

  test.each([`${topic}:unknown`, "v1/projects/p/topics/:publish", `${topic}:publish:publish`])(
    "that is unknown, or without a name, is no method: %s",
    (path) => {
      expect(match("pubsub.googleapis.com", "POST", path)).toEqual([]);
      expect(match("pubsub.googleapis.com", "GET", path)).toEqual([]);
    },
  );

  test("in a name before the last segment is part of the name", () => {
    expect(match("pubsub.googleapis.com", "GET", "v1/projects/a.b:p/topics/t")).toMatchObject([
      { labels: { project: "a.b:p" } },
    ]);
  });

  test("in the last segment of an object's name is part of the name", () => {
    const path = "storage/v1/b/bucket/o/a:b";
    expect(match("storage.googleapis.com", "GET", path, false)).toMatchObject([
      { action: "storage.objects.get", labels: { bucket: "bucket" } },
    ]);
    expect(match("storage.googleapis.com", "GET", path)).toEqual([]);
  });
});

test.each([
  ["a method that the path does not have", COMPUTE, "PATCH", "compute/v1/projects/p/global/images"],
  ["an empty name", COMPUTE, "GET", "compute/v1/projects//global/images"],
  ["more segments", COMPUTE, "GET", "compute/v1/projects/p/global/images/i/x"],
  ["an unknown host", "unknown.googleapis.com", "GET", "v1/projects/p/topics/t"],
  ["an unknown host, and nothing else", "unknown.googleapis.com", "", ""],
])("no method: %s", (_name, host, method, path) => {
  expect(match(host, method, path)).toEqual([]);
});

test("a host is known if an API is there", () => {
  expect(isKnownHost(COMPUTE)).toBe(true);
  expect(isKnownHost("unknown.googleapis.com")).toBe(false);
});
