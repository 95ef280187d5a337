import { describe, expect, test } from "vitest";
import { azureHost } from "./hosts.ts";
import { placeOf, within } from "./resources.ts";

const SUBSCRIPTION = "00000000-1111-2222-3333-44444444ABCD";
const LOWER = SUBSCRIPTION.toLowerCase();

describe("Azure's hosts", () => {
  test.each([
    ["management.azure.com", { kind: "arm", audience: "https://management.azure.com/.default" }],
    [
      "reports1.blob.core.windows.net",
      { kind: "blob", audience: "https://storage.azure.com/.default", account: "reports1" },
    ],
    [
      "abc.z12.blob.core.windows.net",
      { kind: "blob", audience: "https://storage.azure.com/.default", account: "abc" },
    ],
    [
      "my-vault.vault.azure.net",
      { kind: "vault", audience: "https://vault.azure.net/.default", account: "my-vault" },
    ],
  ])("%s", (host, found) => {
    expect(azureHost(host)).toEqual(found);
  });

  test.each([
    "ab.blob.core.windows.net",
    "a-b.blob.core.windows.net",
    `${"a".repeat(25)}.blob.core.windows.net`,
    "x.reports.blob.core.windows.net",
    "reports.z123.blob.core.windows.net",
    "reports.blob.core.windows.net.evil.example",
    "reports.dfs.core.windows.net",
    "ab.vault.azure.net",
    "1vault.vault.azure.net",
    "vault-.vault.azure.net",
    "x.my-vault.vault.azure.net",
    "my-vault.vault.azure.net.evil.example",
    `${"a".repeat(25)}.vault.azure.net`,
    "management.azure.com.evil.example",
    "login.microsoftonline.com",
  ])("%s is none of them", (host) => {
    expect(azureHost(host)).toBeUndefined();
  });
});

describe("a place", () => {
  const subscription = { kind: "scoped", key: "subscriptions", value: LOWER };

  test.each<[string, string | undefined, readonly object[]]>([
    [SUBSCRIPTION, undefined, [subscription]],
    [
      SUBSCRIPTION,
      "My_Group.(1)",
      [subscription, { kind: "scoped", key: "resourceGroups", value: `${LOWER}/my_group.(1)` }],
    ],
    [
      SUBSCRIPTION,
      "é",
      [subscription, { kind: "scoped", key: "resourceGroups", value: `${LOWER}/é` }],
    ],
    [SUBSCRIPTION, "ends.", [{ kind: "unscopable" }]],
    [SUBSCRIPTION, "", [{ kind: "unscopable" }]],
    [SUBSCRIPTION, "a/b", [{ kind: "unscopable" }]],
    [SUBSCRIPTION, "a".repeat(91), [{ kind: "unscopable" }]],
    ["my-subscription", "g", [{ kind: "unscopable" }]],
    [`${SUBSCRIPTION}0`, "g", [{ kind: "unscopable" }]],
    [`0${SUBSCRIPTION}`, "g", [{ kind: "unscopable" }]],
  ])("%s, %s", (id, group, found) => {
    const resources = within(id, group);
    expect(resources).toMatchObject(found);
    expect(resources).toHaveLength(found.length);
  });

  test("of an account is configured, or told for no subscription and no group", () => {
    const places = new Map([["reports", `${SUBSCRIPTION}/data`]]);
    expect(placeOf("reports", places)).toEqual(within(SUBSCRIPTION, "data"));
    expect(placeOf("other", places)).toMatchObject([
      { kind: "unscopable", keys: ["subscriptions", "resourceGroups"] },
    ]);
  });
});
