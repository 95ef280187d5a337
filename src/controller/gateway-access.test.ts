import { expect, test } from "vitest";
import { GATEWAY_SECRETS, gatewayAccess, gatewayNamespaces } from "./gateway-access.ts";
import { loadManifests, testConfig } from "./testing.ts";

const model = (namespace: string, name: string, secret: string): string => `---
apiVersion: svc.io/v1
kind: ModelProvider
metadata: { name: ${name}, namespace: ${namespace} }
spec: { provider: openai, apiKeySecretRef: { name: ${secret}, key: token } }
`;

const PROVIDER = `---
apiVersion: svc.io/v1
kind: Provider
metadata: { name: github, namespace: team }
spec: { type: github, auth: { type: token, secretRef: github } }
`;

const mcp = (name: string, more: string, transport = "http"): string => `---
apiVersion: svc.io/v1
kind: Provider
metadata: { name: ${name}, namespace: team }
spec:
  type: mcp
  mcp: { ${transport === "stdio" ? "transport: stdio, command: [x]" : "url: https://m.test/mcp"} }
  auth: { type: api-key, secretRef: ${name} }
${more}
`;

const OPEN = "  externalAccess: { enabled: true }";

const accessTo = (namespace: string, text: string) =>
  gatewayAccess(namespace, loadManifests(text).load.resources, testConfig());

test("the gateway may read exactly the Secrets of a namespace's ModelProviders", () => {
  const text =
    model("team", "a", "zebra") +
    model("team", "b", "apple") +
    model("team", "c", "apple") +
    model("other", "d", "hidden") +
    PROVIDER;
  const [role, binding] = accessTo("team", text).map(({ object }) => object);
  expect(role).toMatchObject({ metadata: { name: GATEWAY_SECRETS, namespace: "team" } });
  expect(role?.["rules"]).toEqual([
    {
      apiGroups: [""],
      resources: ["secrets"],
      resourceNames: ["apple", "zebra"],
      verbs: ["get", "list", "watch"],
    },
  ]);
  expect(binding).toMatchObject({
    roleRef: { kind: "Role", name: GATEWAY_SECRETS },
    subjects: [{ kind: "ServiceAccount", name: "svc-gateway", namespace: "svc-system" }],
  });
});

test("and the credentials of MCP servers that access keys may use", () => {
  const text = [
    mcp("open", OPEN),
    mcp("closed", "  externalAccess: { enabled: false }"),
    mcp("unnamed", ""),
    mcp("local", "", "stdio"),
    PROVIDER,
  ].join("");
  const [role] = accessTo("team", text).map(({ object }) => object);
  expect(role?.["rules"]).toMatchObject([{ resourceNames: ["open"] }]);
});

test("and those of classifiers", () => {
  const guard = (name: string, auth: string) => `---
apiVersion: svc.io/v1
kind: GuardBinding
metadata: { name: ${name}, namespace: team }
spec: { classifier: { type: custom, endpoint: "https://guard.test"${auth} } }
`;
  const text = [guard("hosted", ", auth: { secretRef: classifier }"), guard("open", "")].join("");
  const [role] = accessTo("team", text).map(({ object }) => object);
  expect(role?.["rules"]).toMatchObject([{ resourceNames: ["classifier"] }]);
  expect([...gatewayNamespaces(loadManifests(text).load.resources)]).toEqual(["team"]);
});

test("namespaces are those with such Secrets, whichever kind names them", () => {
  const { resources } = loadManifests(
    model("models", "a", "key") + mcp("open", OPEN) + mcp("closed", "").replaceAll("team", "other"),
  ).load;
  expect([...gatewayNamespaces(resources)].toSorted()).toEqual(["models", "team"]);
});

test("a namespace of which the gateway needs no Secret gets nothing", () => {
  expect(accessTo("tea", mcp("open", OPEN))).toEqual([]);
  expect(accessTo("team", mcp("closed", ""))).toEqual([]);
});

test("a namespace without ModelProviders needs nothing: no names would be all names", () => {
  expect(accessTo("team", PROVIDER)).toEqual([]);
  expect(accessTo("absent", model("team", "a", "key"))).toEqual([]);
});
