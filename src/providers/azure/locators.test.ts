/** The places that a body of Resource Manager names. */
import { describe, expect, test } from "vitest";
import type { StrictJson } from "../strict-json.ts";
import { Locators } from "./locators.ts";

const OWN = "00000000-0000-0000-0000-000000000001";
const OTHER = "00000000-0000-0000-0000-00000000000A";
const LOWER = OTHER.toLowerCase();

function placesOf(document: StrictJson, own: string | undefined = OWN): string[] {
  const locators = new Locators(new Map([["reports", `${LOWER}/data`]]), own);
  locators.addDocument(document);
  return locators.resources
    .map((place) => (place.kind === "scoped" ? `${place.key}=${place.value}` : place.kind))
    .toSorted((a, b) => a.localeCompare(b));
}

const inGroup = (subscription: string, group: string): string[] => [
  `resourceGroups=${subscription}/${group}`,
  `subscriptions=${subscription}`,
];
const WHOLE = [`resourceGroups=${LOWER}/*`, `subscriptions=${LOWER}`];

describe("members that are named after their content", () => {
  test.each<[name: string, document: StrictJson, places: string[]]>([
    ["a subscription", { subscriptionId: OTHER }, WHOLE],
    ["the path's own subscription", { subscription_id: OWN }, [`subscriptions=${OWN}`]],
    [
      "the path's own, in capitals",
      { subscriptionIds: OWN.toUpperCase() },
      [`subscriptions=${OWN}`],
    ],
    ["what is no subscription", { subscriptionId: "x" }, ["unscopable"]],
    ["an empty subscription", { subscriptionId: "" }, []],
    ["a subscription that is no text", { subscriptionId: 1 }, []],
    ["a group of the path's subscription", { resourceGroup: "Data" }, inGroup(OWN, "data")],
    [
      "a group of another subscription",
      { resourceGroupName: "Data", subscriptionId: OTHER },
      inGroup(LOWER, "data"),
    ],
    [
      "two groups",
      { resourceGroup: "a", targetResourceGroup: "b" },
      [...inGroup(OWN, "a").slice(0, 1), ...inGroup(OWN, "b")],
    ],
    ["what is no group", { resourceGroup: "a b" }, ["unscopable"]],
    ["a group, by a path", { resourceGroup: "/x" }, []],
    [
      "a group of a nested member",
      { a: [{ b: { resource_group: "Data" } }] },
      inGroup(OWN, "data"),
    ],
    ["a management group", { managementGroupId: "m" }, ["unscopable"]],
    ["a management group, whatever it holds", { managementGroup: {} }, ["unscopable"]],
    ["another member", { subscriptionIdentifier: OTHER, group: "g", name: "n" }, []],
  ])("%s", (_name, document, places) => {
    expect(placesOf(document)).toEqual(places);
  });

  test.each<[name: string, document: StrictJson, places: string[]]>([
    ["a group", { resourceGroup: "Data" }, ["unscopable"]],
    ["a subscription", { subscriptionId: OTHER }, WHOLE],
    [
      "a group of a subscription",
      { resourceGroup: "a", subscriptionId: OTHER },
      inGroup(LOWER, "a"),
    ],
    ["neither", { name: "n" }, []],
  ])("of a path without a subscription: %s", (_name, document, places) => {
    const locators = new Locators(new Map(), undefined);
    locators.addDocument(document);
    expect(
      locators.resources
        .map((place) => (place.kind === "scoped" ? `${place.key}=${place.value}` : place.kind))
        .toSorted((a, b) => a.localeCompare(b)),
    ).toEqual(places);
  });
});

describe("a text", () => {
  const id = `/subscriptions/${OTHER}/resourceGroups/Data/providers/x`;
  test.each<[name: string, text: string, places: string[]]>([
    ["an id in a group", id, inGroup(LOWER, "data")],
    ["an id of a subscription", `/subscriptions/${OTHER}`, WHOLE],
    ["the path's own subscription", `/subscriptions/${OWN}`, [`subscriptions=${OWN}`]],
    ["an id, percent-encoded", encodeURIComponent(id), inGroup(LOWER, "data")],
    ["an id beside a broken escape", `${id}/%zz`, inGroup(LOWER, "data")],
    ["an id with doubled slashes", id.replaceAll("/", "//"), inGroup(LOWER, "data")],
    ["an id with backslashes", id.replaceAll("/", "\\"), inGroup(LOWER, "data")],
    ["an id in other letters", id.toUpperCase(), inGroup(LOWER, "data")],
    ["an id after spaces", `  ${id}`, inGroup(LOWER, "data")],
    ["an id at the beginning of prose", `${id} is meant`, inGroup(LOWER, "data")],
    ["an address at the beginning of prose", `https://x/${id} is meant`, inGroup(LOWER, "data")],
    ["an id in prose", `see ${id}`, []],
    ["a word that ends so", `/mysubscriptions/${OTHER}`, []],
    ["what is no subscription", "/subscriptions/x", ["unscopable"]],
    ["a management group", "/providers/Microsoft.Management/managementGroups/m", ["unscopable"]],
    [
      "an account of a known place",
      "https://reports.blob.core.windows.net/c",
      inGroup(LOWER, "data"),
    ],
    ["it in other letters", "https://REPORTS.z1.web.core.windows.net", inGroup(LOWER, "data")],
    ["another account", "https://other.blob.core.windows.net/c", ["unscopable"]],
    ["a vault", "https://other.vault.azure.net", ["unscopable"]],
    ["a registry", "other.azurecr.io/image", ["unscopable"]],
    ["a module of hardware", "https://x.managedhsm.azure.net", ["unscopable"]],
    ["a registry below another name", "a.reports.azurecr.io", ["unscopable"]],
    ["prose", "nothing is here", []],
  ])("%s", (_name, text, places) => {
    expect(placesOf({ text })).toEqual(places);
  });

  test("that is a member's name is read as well", () => {
    expect(placesOf({ identities: { [id]: {} } })).toEqual(inGroup(LOWER, "data"));
  });
});

test("a body that names very many places is in no subscription", () => {
  const groups = (count: number): string[] =>
    Array.from({ length: count }, (_, index) => `/subscriptions/${OWN}/resourceGroups/g${index}`);
  expect(placesOf({ ids: groups(199) })).toHaveLength(200);
  expect(placesOf({ ids: groups(200) })).toEqual(["unscopable"]);
  expect(placesOf({ id: groups(5_000).join("'") })).toEqual(["unscopable"]);
  expect(placesOf({ ids: groups(5_000).join(" ").split(" ") })).toEqual(["unscopable"]);
});
