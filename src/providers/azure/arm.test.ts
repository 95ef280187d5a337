/** Resource Manager at its edges; resolve.test.ts has its usual paths, methods and bodies. */
import { describe, expect, test } from "vitest";
import { context, request } from "../testing.ts";
import { sample, SUBSCRIPTION } from "./contract-sample.ts";
import { plugin } from "./plugin.ts";

const azure = plugin.create(
  context({ authType: "client-secret", ...sample.auth["client-secret"] }),
);
const ARM = "https://management.azure.com";
const SUB = `${ARM}/subscriptions/${SUBSCRIPTION}`;
const GROUP = `${SUB}/resourceGroups/Data`;
const VM = `${GROUP}/providers/Microsoft.Compute/virtualMachines/vm`;

interface Extra {
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** Returns the action and the kinds of its resources; `refused` if there is none. */
function told(line: string, { headers = {}, body }: Extra = {}): string {
  const resolution = azure.resolveAction(
    request(line, { headers, ...(body === undefined ? {} : { body }) }),
  );
  if (resolution.kind !== "resolved") return "refused";
  return resolution.actions
    .map(({ action, resources }) => [action, ...resources.map(({ kind }) => kind)].join(" "))
    .join("; ");
}

describe("lists and objects of Resource Manager itself", () => {
  test.each([
    [`HEAD ${VM}`, "Microsoft.Compute/virtualMachines/read scoped scoped"],
    [`HEAD ${GROUP}`, "Microsoft.Resources/subscriptions/resourceGroups/read scoped scoped"],
    [`PATCH ${SUB}`, "Microsoft.Resources/subscriptions/write scoped"],
    [`PUT ${ARM}/subscriptions`, "refused"],
    [`POST ${ARM}/subscriptions`, "refused"],
    [`POST ${SUB}`, "refused"],
    [`POST ${GROUP}`, "refused"],
    [`POST ${ARM}/tenants`, "refused"],
    [`PUT ${ARM}/tenants`, "refused"],
    [`GET ${ARM}/tenants/t`, "refused"],
    [`GET ${ARM}/providers`, "Microsoft.Resources/providers/read unscopable"],
    [`POST ${ARM}/providers`, "refused"],
    [`GET ${ARM}/providers/Microsoft.Compute`, "Microsoft.Resources/providers/read unscopable"],
    [
      `GET ${GROUP}/providers/Microsoft.Compute`,
      "Microsoft.Resources/providers/read scoped scoped",
    ],
    [`POST ${GROUP}/providers/Microsoft.Compute`, "refused"],
    [
      `GET ${GROUP}/providers`,
      "Microsoft.Resources/subscriptions/resourceGroups/providers/read scoped scoped",
    ],
    [`TRACE ${VM}`, "refused"],
    [`PUT ${GROUP}/providers/Microsoft.Compute/virtualMachines`, "refused"],
    [`DELETE ${GROUP}/providers/Microsoft.Compute/virtualMachines`, "refused"],
    [`POST ${VM}`, "refused"],
    [`GET ${GROUP}/providers/Compute/virtualMachines/vm`, "refused"],
    [`GET ${GROUP}/providers/Microsoft.Compute/1vm/vm`, "refused"],
    [`GET ${GROUP}/providers/Microsoft.Compute/virtualMachines/vm/1ext/e`, "refused"],
  ])("%s: %s", (line, expected) => {
    expect(told(line)).toBe(expected);
  });
});

describe("actions that answer with credentials", () => {
  test.each([
    "list",
    "listKeys",
    "LISTKEYS",
    "listAdminCredentials",
    "listConnectionStrings",
    "regenerateKey",
    "regenerateX",
    "generateCredentials",
    "retrieveScripts",
    "generateVpnProfile",
    "getSharedKey",
    "beginGetAccess",
    "getToken",
    "vpnClientPackage",
  ])("POST %s is refused", (name) => {
    expect(told(`POST ${VM}/${name}`)).toBe("refused");
  });

  test.each(["start", "generateReport", "listUsages", "getHealth", "retrieveLogs", "keylist"])(
    "POST %s is an action",
    (name) => {
      expect(told(`POST ${VM}/${name}`)).toBe(
        `Microsoft.Compute/virtualMachines/${name}/action scoped scoped`,
      );
    },
  );
});

describe("operations that reach further", () => {
  const deployment = `${GROUP}/providers/Microsoft.Resources/deployments/d`;

  test.each(["GET", "HEAD"])("%s of a deployment reads the deployment alone", (method) => {
    expect(told(`${method} ${deployment}`)).toBe(
      "Microsoft.Resources/deployments/read scoped scoped",
    );
  });

  test.each(["PUT", "PATCH", "DELETE"])("%s of a deployment reaches other groups", (method) => {
    expect(told(`${method} ${deployment}`)).toMatch(/ unscopable$/);
  });
});

describe("places that the query and the body name", () => {
  const other = `/subscriptions/00000000-0000-0000-0000-000000000009/resourceGroups/x`;
  const WRITTEN = "Microsoft.Compute/virtualMachines/write scoped scoped";
  const FURTHER = `${WRITTEN} scoped scoped`;
  const json = { "content-type": "application/json" };

  test("a filter is no place, and any other parameter may name one", () => {
    const read = "Microsoft.Compute/virtualMachines/read scoped scoped";
    expect(told(`GET ${VM}?$filter=${encodeURIComponent(other)}`)).toBe(read);
    expect(told(`GET ${VM}?$expand=instanceView&api-version=2024-07-01`)).toBe(read);
    expect(told(`GET ${VM}?target=${encodeURIComponent(other)}`)).toBe(`${read} scoped scoped`);
    expect(told(`GET ${VM}?x$filter=${encodeURIComponent(other)}`)).toBe(`${read} scoped scoped`);
    expect(told(`GET ${VM}?$filterx=${encodeURIComponent(other)}`)).toBe(`${read} scoped scoped`);
  });

  test.each([
    "application/json",
    "Application/JSON",
    "application/json; charset=utf-8",
    'application/json ;charset="UTF-8" ',
    "application/json;  charset=utf-8",
    "application/merge-patch+json",
    "application/vnd.a-b.c+json",
  ])("a body of type %j is read", (type) => {
    const extra = { headers: { "content-type": type }, body: JSON.stringify({ id: other }) };
    expect(told(`PUT ${VM}`, extra)).toBe(FURTHER);
    expect(told(`PUT ${VM}`, { ...extra, body: "{}" })).toBe(WRITTEN);
  });

  test.each([
    "",
    "text/plain",
    "text/application/json",
    "application/jsonp",
    "application/json, text/plain",
    "application/json; charset=utf-16",
    "application/json; charset=utf-8; x=y",
    "application/+json",
    "application/a b+json",
  ])("a body of type %j is not read, and may name any place", (type) => {
    const extra = { headers: { "content-type": type }, body: "{}" };
    expect(told(`PUT ${VM}`, extra)).toBe(`${WRITTEN} unscopable`);
  });

  test("a body without a type, compressed, or not valid JSON may name any place", () => {
    for (const extra of [
      { body: "{}" },
      { headers: { ...json, "content-encoding": "gzip" }, body: "{}" },
      { headers: json, body: "{" },
      { headers: json, body: '{"a":1,"a":2}' },
    ]) {
      expect(told(`PUT ${VM}`, extra)).toBe(`${WRITTEN} unscopable`);
    }
  });

  test("the place of the path is not named twice", () => {
    const id = `/subscriptions/${SUBSCRIPTION}/resourceGroups/Data`;
    expect(told(`PUT ${VM}`, { headers: json, body: JSON.stringify({ id }) })).toBe(WRITTEN);
  });
});
