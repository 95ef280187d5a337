import { describe, expect, test } from "vitest";
import { type Agent, agentKind } from "./agent.ts";
import { variantOf } from "./agent-pod.ts";
import type { ResourceReader } from "./metadata.ts";
import { parseObject } from "./parse.ts";

const agent = (spec: object, more: object = {}) => ({
  apiVersion: "svc.io/v1",
  kind: "Agent",
  metadata: { name: "a" },
  spec,
  ...more,
});

/** Returns a valid Agent of the given spec, as the controller reads it. */
function parsed(spec: object): Agent {
  const result = parseObject(agent(spec), "controller");
  if (result.kind !== "ok" || result.resource.kind !== "Agent")
    throw new Error(JSON.stringify(result));
  return result.resource;
}

/** Returns `path: message` of each finding. */
function findings(value: object, reader: ResourceReader = "controller"): readonly string[] {
  const result = parseObject(value, reader);
  return result.kind === "ok"
    ? []
    : result.findings.map(({ path, message }) => `${path.join(".")}: ${message}`);
}

describe("variantOf", () => {
  test.each([
    [{}, "template"],
    [{ image: "i" }, "service"],
    [{ image: "i", variant: "task" }, "task"],
    [{ image: "i", variant: "template" }, "template"],
  ])("%j is %s", (spec, variant) => expect(variantOf(parsed(spec))).toBe(variant));
});

test("quantities are texts, also where they were written as integers", () =>
  expect(
    parsed({ image: "i", resources: { limits: { cpu: 2, memory: "1Gi" } } }).spec,
  ).toMatchObject({ resources: { limits: { cpu: "2", memory: "1Gi" } } }));

test.each([
  [{ variant: "service" }, "spec.image: is required for the variants service and task"],
  [{ replicas: 1 }, "spec.replicas: applies only to the variant service"],
  [{ image: "i", job: {} }, "spec.job: applies only to the variant task"],
  [{ env: [{ name: "OPENAI_API_KEY", value: "x" }] }, "spec.env.0.name: must not be a variable"],
  [
    {
      env: [
        { name: "A", value: "" },
        { name: "A", value: "" },
      ],
    },
    "spec.env.1.name: must differ",
  ],
  [
    { volumes: [{ mountPath: "/a", secret: { secretName: "s" } }] },
    "spec.volumes.0.secret: must not",
  ],
  [{ volumes: [{ mountPath: "/proc/self" }] }, "spec.volumes.0.mountPath: must not be '/'"],
  [
    { volumes: [{ mountPath: "/a", emptyDir: {}, configMap: { name: "c" } }] },
    "spec.volumes.0: must have at most one source",
  ],
  [
    { podAnnotations: { "container.apparmor.security.beta.kubernetes.io/agent": "unconfined" } },
    "spec.podAnnotations: must not have keys that begin with",
  ],
  [
    { livenessProbe: { tcpSocket: { port: 1 }, exec: { command: ["x"] } } },
    "spec.livenessProbe: must",
  ],
])("%j is refused", (spec, message) =>
  expect(findings(agent(spec))).toEqual([expect.stringContaining(message)]),
);

describe("a reader refuses what has no effect where it reads", () => {
  const EVERYTHING = agent(
    {
      image: "i",
      runAsUser: 1000,
      volumes: [{ mountPath: "/a" }],
      guards: [{ binding: "g" }],
      triggers: [{ webhook: {} }],
      filesystem: { readOnlyPaths: ["/a"] },
      tools: [{ type: "web_fetch" }],
      packages: ["git"],
    },
    { inbound: { port: 80 } },
  );
  test.each<[ResourceReader, readonly string[]]>([
    [
      "machine",
      [
        "spec.filesystem",
        "spec.triggers",
        "spec.tools",
        "spec.packages",
        "spec.volumes",
        "spec.runAsUser",
        "inbound",
      ],
    ],
    ["gateway", []],
    ["controller", ["spec.filesystem", "spec.tools", "spec.packages", "inbound"]],
  ])("%s", (reader, fields) =>
    expect(findings(EVERYTHING, reader)).toEqual(
      fields.map((field) => `${field}: not supported yet`),
    ),
  );

  test("every reader's fields exist", () =>
    expect(agentKind.unsupported.every(({ readers }) => readers !== undefined)).toBe(true));
});
