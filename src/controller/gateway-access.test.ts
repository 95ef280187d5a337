import { expect, test } from "vitest";
import { GATEWAY_SECRETS, gatewayAccess } from "./gateway-access.ts";
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

test("a namespace without ModelProviders needs nothing: no names would be all names", () => {
  expect(accessTo("team", PROVIDER)).toEqual([]);
  expect(accessTo("absent", model("team", "a", "key"))).toEqual([]);
});
