/**
 * Golden pairs `testdata/policy/<name>.in.yaml -> <name>.out.yaml`. `UPDATE_GOLDEN=1` writes the
 * outputs and deletes those without an input. In an input, comment lines configure the case: `# env
 * NAME=value`, `# ask <agent> <model>`, `# ask key:<namespace>/<name> <model>`, `# no mock`, `#
 * guard service <url>`.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Goldens, goldenInputs } from "../platform/testing-goldens.ts";
import { afterAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import type {
  AgentPolicy,
  GuardPolicy,
  KeyEntry,
  ModelResolution,
  PolicySnapshot,
  ModelProviderPolicy,
} from "../policy/snapshot.ts";
import { withProblems } from "../policy/status.ts";
import { parseDocuments } from "../resources/parse.ts";
import { buildResourceSet } from "../resources/resource-set.ts";
import { compilePolicy } from "./policy.ts";

const DIR = fileURLToPath(new URL("./testdata/policy/", import.meta.url));

const tokenHashOf = (namespace: string, name: string) =>
  createHash("sha256").update(`token of ${namespace}/${name}`).digest("hex");

const names = goldenInputs(DIR);
const goldens = new Goldens(DIR);

describe("compilePolicy golden", () => {
  test.each(names)("%s", (name) => {
    const actual = compileText(readFileSync(`${DIR}${name}.in.yaml`, "utf8"), `${name}.in.yaml`);
    goldens.check(`${name}.out.yaml`, actual);
  });

  afterAll(() => {
    expect(names.length).toBeGreaterThan(0);
    goldens.checkOrphans(".out.yaml");
  });
});

function compileText(text: string, file: string): string {
  const env: Record<string, string> = {};
  for (const [, key = "", value = ""] of text.matchAll(/^# env (\w+)=(.*)$/gm)) env[key] = value;
  const { resources, problems } = parseDocuments(text, file);
  const { snapshot, statuses } = compilePolicy(buildResourceSet(resources), {
    env,
    now: Date.parse("2026-11-21T12:00:00Z"),
    tokenHashesOf: (namespace, name) => [tokenHashOf(namespace, name)],
    guardEndpoint: /^# guard service (\S+)$/m.exec(text)?.[1],
    mockEndpoint: /^# no mock$/m.test(text)
      ? undefined
      : { host: "127.0.0.1", port: 9999, tls: false, basePath: "/v1" },
  });
  const answers: Record<string, unknown> = {};
  for (const [, agent = "", model = ""] of text.matchAll(/^# ask (\S+) (.*)$/gm)) {
    const [namespace = "", name = ""] = agent.split("/");
    const policy = agent.startsWith("key:")
      ? [...snapshot.keysByHash.values()].find(
          (entry) => `key:${entry.key.namespace}/${entry.key.name}` === agent,
        )?.key
      : snapshot.agentsByTokenHash.get(tokenHashOf(namespace, name));
    answers[`${agent} ${model}`] =
      policy === undefined ? "no such caller" : renderResolution(policy.resolveModel(model));
  }
  const output = {
    ...renderSnapshot(snapshot),
    statuses: withProblems(statuses, problems),
    answers,
  };
  return stringify(output, { lineWidth: 0, aliasDuplicateObjects: false });
}

function renderSnapshot(snapshot: PolicySnapshot) {
  return {
    providers: Object.fromEntries(
      [...snapshot.providers].map(([key, provider]) => [key, renderProvider(provider)]),
    ),
    agents: Object.fromEntries(
      [...snapshot.agentsByTokenHash.values()].map((agent) => [agent.workload, renderAgent(agent)]),
    ),
    keys: Object.fromEntries(
      [...snapshot.keysByHash].map(([hash, entry]) => [hash, renderKey(entry)]),
    ),
  };
}

/** Everything except the function. */
function renderProvider(provider: ModelProviderPolicy) {
  const fields = Object.entries(provider).filter(
    ([field]) => field !== "allowsModel" && field !== "apiKey",
  );
  return {
    ...Object.fromEntries(fields),
    apiKey: provider.apiKey === undefined ? "none" : String(provider.apiKey),
  };
}

function renderAgent(agent: AgentPolicy) {
  const { limits, grants, guards } = agent;
  return {
    limits,
    grants: grants.map((grant) => `${grant.ref} -> ${grant.provider.key} ${grant.model}`),
    ...renderGuards(guards),
  };
}

/** Everything except hashes; nothing if there are none. */
function renderGuards(guards: readonly GuardPolicy[]) {
  if (guards.length === 0) return {};
  return {
    guards: guards.map(({ classifier, scan, ...guard }) => {
      const { id: _id, header, ...shown } = classifier;
      return {
        ...guard,
        classifier: {
          ...shown,
          header: header === undefined ? "none" : `${header.name}: ${String(header.value)}`,
        },
        scan: {
          ...scan,
          toolResults:
            typeof scan.toolResults === "string" ? scan.toolResults : [...scan.toolResults],
        },
      };
    }),
  };
}

function renderKey({ key, graceUntil }: KeyEntry) {
  const { namespace, name, workload, revoked, expiresAt, providerKey, limits, grants, guards } =
    key;
  return {
    namespace,
    name,
    workload,
    revoked,
    expiresAt,
    graceUntil,
    providerKey,
    limits,
    grants: grants.map((grant) => grant.ref),
    ...renderGuards(guards),
  };
}

function renderResolution(resolution: ModelResolution): string {
  switch (resolution.kind) {
    case "granted":
      return (
        `granted ${resolution.grant.ref} -> ${resolution.grant.provider.key} ` +
        resolution.grant.model
      );
    case "ambiguous":
      return `ambiguous ${resolution.candidates.join(" ")}`;
    case "denied":
      return `denied: ${resolution.reason}`;
    case "unknown":
      return "unknown";
  }
}
