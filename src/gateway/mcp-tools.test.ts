/** Which tools the control API shows, without a server behind. */
import { expect, test } from "vitest";
import { FakeClock } from "../platform/testing.ts";
import {
  type AccessKeyPolicy,
  EMPTY_SNAPSHOT,
  type ItemLists,
  type PolicySnapshot,
} from "../policy/snapshot.ts";
import { CredentialError } from "../mcp/gateway/credentials.ts";
import { keysOf, viewTools } from "./mcp-tools.ts";

const clock = new FakeClock();
const OPEN: ItemLists = { allowed: undefined, denied: [] };

function key(name: string, change: Partial<AccessKeyPolicy> = {}): AccessKeyPolicy {
  return {
    kind: "key",
    namespace: "default",
    name,
    workload: `ext:${name}`,
    revoked: false,
    expiresAt: undefined,
    providerKey: "",
    mcp: {
      provider: "tracker",
      server: "default/tracker",
      lists: { tools: OPEN, prompts: OPEN, resources: OPEN },
    },
    limits: {
      maxTokensPerDay: undefined,
      maxRequestsPerDay: undefined,
      requestsPerMinute: undefined,
    },
    grants: [],
    guards: [],
    allowsAddress: () => true,
    allowsModel: () => false,
    resolveModel: () => ({ kind: "unknown" }),
    ...change,
  };
}

const snapshotOf = (...keys: readonly AccessKeyPolicy[]): PolicySnapshot => ({
  ...EMPTY_SNAPSHOT,
  keysByHash: new Map(
    keys.map((one, index) => [String(index), { key: one, graceUntil: undefined }]),
  ),
});

test("keys are those of the server that are accepted now, each once, by name", () => {
  const rotated = key("rotated");
  const grant = { provider: "tracker", server: "team/tracker", lists: key("x").mcp!.lists };
  const snapshot = snapshotOf(
    key("z"),
    rotated,
    rotated,
    key("revoked", { revoked: true }),
    key("expired", { expiresAt: clock.now() }),
    key("expiring", { expiresAt: clock.now() + 1 }),
    key("model", { mcp: undefined }),
    key("other", { mcp: grant }),
  );
  const found = keysOf(snapshot, "default/tracker", clock.now());
  expect(found.map(({ name }) => name)).toEqual(["expiring", "rotated", "z"]);
});

test.each<[string, Partial<PolicySnapshot>, number, string]>([
  ["no such Provider", {}, 404, "there is no Provider tracker of type mcp in namespace default"],
  [
    "one without external access",
    { closedMcpServers: new Map([["default/tracker", "disabled"]]) },
    409,
    "set spec.externalAccess.enabled to true",
  ],
  [
    "one that is not ready",
    { closedMcpServers: new Map([["default/tracker", "not-ready"]]) },
    409,
    "see svc get provider tracker -o wide",
  ],
  [
    "one whose credential is missing",
    {
      mcpServers: new Map([
        [
          "default/tracker",
          {
            key: "default/tracker",
            namespace: "default",
            name: "tracker",
            transport: "http",
            endpoint: { tls: true, host: "m.test", port: 443 },
            path: "/",
            credential: { kind: "none" },
            lists: { tools: OPEN, prompts: OPEN, resources: OPEN },
            auditOnly: false,
            recordsArguments: false,
            maxRequestsPerDay: undefined,
          },
        ],
      ]),
    },
    502,
    "Provider tracker: no token",
  ],
])("%s is explained", async (_name, policy, status, message) => {
  const options = {
    policy: () => ({ ...EMPTY_SNAPSHOT, ...policy }),
    credentials: {
      headerOf: () => Promise.reject(new CredentialError("Provider tracker: no token")),
      refused: () => undefined,
    },
    envoySocket: "/nowhere",
    clock,
  };
  await expect(viewTools(options, "default", "tracker")).rejects.toMatchObject({
    status,
    message: expect.stringContaining(message) as unknown,
  });
});
