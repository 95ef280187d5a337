/** The places that a body names. */
import { describe, expect, test } from "vitest";
import type { StrictJson } from "../strict-json.ts";
import { GcpPlaces } from "./locators.ts";

/** Returns the projects of a body; `elsewhere` for what is in no project. */
function placesOf(document: StrictJson): string[] {
  const places = new GcpPlaces(new Map([["owned", "owner"]]));
  places.addDocument(document);
  return places.resources.map((place) => (place.kind === "scoped" ? place.value : "elsewhere"));
}

describe("a member that is named after its content", () => {
  test.each<[name: string, document: StrictJson, places: string[]]>([
    ["a project", { projectId: "other" }, ["other"]],
    ["a project's number", { projectNumber: 123 }, ["123"]],
    ["an empty project", { projectId: "" }, []],
    ["a bucket of a known project", { bucket: "owned" }, ["owner"]],
    ["another bucket", { bucket: "b" }, ["elsewhere"]],
    ["a table of another project", { tableId: "other.d.t" }, ["other"]],
    [
      "a table of a project of a domain",
      { table: "`example.com:other.d.t`" },
      ["example.com:other"],
    ],
    ["a table of its own project", { tableId: "d.t" }, []],
    ["a table's name alone", { tableId: "t" }, []],
    ["what holds a table's name besides others", { tableId: "in other.d.t" }, []],
    ["what begins with a table's name", { tableId: "other.d.t and more" }, []],
    ["what looks like a table under another name", { title: "other.d.t" }, []],
    ["a query", { query: "SELECT 1" }, ["elsewhere"]],
    ["an empty query", { query: "" }, []],
    ["a query that is no text", { query: { limit: 1 } }, []],
    ["a folder of Drive", { driveFolder: "f" }, ["elsewhere"]],
    ["a source in Drive, whatever it holds", { googleDriveSource: {} }, ["elsewhere"]],
    ["a member whose name only begins like Drive's", { driver: "d" }, []],
  ])("%s", (_name, document, places) => {
    expect(placesOf(document)).toEqual(places);
  });
});

describe("a text", () => {
  test.each<[name: string, text: string, places: string[]]>([
    ["a full name", "projects/other/topics/t", ["other"]],
    ["a full name, percent-encoded", "projects%2Fother%2Ftopics%2Ft", ["other"]],
    ["a full name beside a broken escape", "projects/other/topics/%zz", ["other"]],
    ["a full name after spaces", "  projects/other", ["other"]],
    ["a full name in prose", "see projects/other", []],
    ["prose that begins with one", "projects/other is meant", ["other"]],
    ["a file of Drive", "https://drive.google.com/file/d/1", ["elsewhere"]],
    ["an organization", "organizations/1", ["elsewhere"]],
    ["a service account", "serviceAccount:a@other.iam.gserviceaccount.com", ["other"]],
    ["another address with an at sign", "me@example.com", []],
  ])("%s", (_name, text, places) => {
    expect(placesOf({ text })).toEqual(places);
  });
});

describe("an address", () => {
  test.each<[text: string, places: string[]]>([
    ["gs://owned/a", ["owner"]],
    ["GS://other/a", ["elsewhere"]],
    ["https://storage.googleapis.com/owned/a", ["owner"]],
    ["https://storage.googleapis.com:443/other/a", ["elsewhere"]],
    ["https://storage.mtls.googleapis.com/owned/a", ["owner"]],
    ["https://storage.cloud.google.com/owned/a", ["owner"]],
    ["https://storage.googleapis.com/storage/v1/b/owned/o/a", ["owner"]],
    ["https://www.googleapis.com/download/storage/v1/b/owned/o/a", ["owner"]],
    ["https://other.storage.googleapis.com/a", ["elsewhere"]],
    ["bq://other.d.t", ["other"]],
    ["gcr.io/other/image", ["other"]],
    ["xgcr.io/other/image", []],
    ["europe-docker.pkg.dev/other/r/i", ["other"]],
    ["other@appspot.gserviceaccount.com", ["other"]],
    ["123-compute@developer.gserviceaccount.com", ["123"]],
    ["other:europe-west1:db", ["other"]],
    ["p-1:europe-west1:a,other:europe-west1:b", ["p-1", "other"]],
    ["example.com:other:europe-west1:db", ["example.com:other"]],
    ["billingAccounts/0-1-2", ["elsewhere"]],
    ["//cloudresourcemanager.googleapis.com/v1/folders/5", ["elsewhere"]],
    ["PROJECTS/other", ["other"]],
    ["x/projects/other?a=b", ["other"]],
    ["my-projects/other", []],
    ["projects/-/x", ["elsewhere"]],
    ["projects/_/buckets/owned", ["owner"]],
    ["https://x/?u=projects%2Fother", ["other"]],
    ["https://x/?u=projects%252Fother", []],
  ])("%s", (text, places) => {
    expect(placesOf({ text })).toEqual(places);
  });
});

describe("a member that holds a path, or what begins like a name", () => {
  test.each<[name: string, document: StrictJson, places: string[]]>([
    ["a project by its full name", { project: "projects/other" }, ["other"]],
    ["a project with a space", { project: "other x" }, []],
    ["what is no project", { project: "-" }, ["elsewhere"]],
    ["a project that is a flag", { project: true }, []],
    ["a project in a list", { projects: ["other", "third"] }, ["third", "other"]],
    ["a bucket by its address", { bucket: "gs://owned/a" }, ["owner"]],
    ["a bucket with a space", { bucket: "a b" }, []],
    ["a bucket's id", { sourceBucketId: "owned" }, ["owner"]],
    ["a view of another project", { viewName: "other.d.v" }, ["other"]],
    ["one project under two names", { project: "other", text: "projects/other" }, ["other"]],
    ["two buckets of nobody", { bucket: "a", logBucket: "b" }, ["elsewhere"]],
    ["a number that is no project", { size: 123 }, []],
    ["a query and a project", { query: "SELECT 1", project: "other" }, ["other", "elsewhere"]],
  ])("%s", (_name, document, places) => {
    expect(placesOf(document)).toEqual(places);
  });

  test("the caller's own data is left out, and only that", () => {
    const places = new GcpPlaces(new Map());
    places.addDocument({ data: "projects/a", other: "projects/b" }, new Set(["data"]));
    expect(places.resources).toEqual([{ kind: "scoped", key: "projects", value: "b" }]);
  });
});

test("a body that names very many places is in no project", () => {
  const names = (count: number): string[] =>
    Array.from({ length: count }, (_, index) => `projects/p${index}`);
  expect(placesOf({ names: names(200) })).toHaveLength(200);
  expect(placesOf({ names: names(201) })).toEqual(["elsewhere"]);
  expect(placesOf({ text: names(5_000).join(",") })).toEqual(["elsewhere"]);
});
