/**
 * Golden pairs `testdata/compile/<name>.in.yaml -> <name>.out.yaml` of everything that is compiled
 * together; `testdata/policy` has the details of the policy. `UPDATE_GOLDEN=1` writes the outputs
 * and deletes those without an input. In an input, comment lines configure the case: `# env
 * NAME=value`, `# now <time>`, `# generation <id> <number>`. A line `# newest` separates the
 * documents of an earlier load from those that replace them.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Goldens, goldenInputs } from "../platform/testing-goldens.ts";
import { afterAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { plugins } from "../providers/registry.ts";
import { parseDocuments } from "../resources/parse.ts";
import { mergeFiles } from "../sources/folder/merge.ts";
import type { LoadResult } from "../sources/load-result.ts";
import { compile } from "./compile.ts";

const DIR = fileURLToPath(new URL("./testdata/compile/", import.meta.url));

const names = goldenInputs(DIR);
const goldens = new Goldens(DIR);

describe("compile golden", () => {
  test.each(names)("%s", (name) => {
    const actual = compileText(readFileSync(`${DIR}${name}.in.yaml`, "utf8"), `${name}.in.yaml`);
    goldens.check(`${name}.out.yaml`, actual);
  });

  afterAll(() => {
    expect(names.length).toBeGreaterThan(0);
    goldens.checkOrphans(".out.yaml");
  });
});

/** Loads a text; if it has a line `# newest`, the part after it, after that before it. */
function load(text: string, file: string): LoadResult {
  const [first = "", newest] = text.split(/^# newest$/m);
  const loaded = (part: string, before: Parameters<typeof mergeFiles>[1]) =>
    mergeFiles(
      [{ file, documents: parseDocuments(part, file).documents, unreadable: undefined }],
      before,
    );
  const merged = loaded(first, new Map());
  const last = newest === undefined ? merged : loaded(newest, merged.serving);
  const generations = [...text.matchAll(/^# generation (\S+) (\d+)$/gm)].map(
    ([, id = "", generation]): [string, number] => [id, Number(generation)],
  );
  return { ...last.load, generations: new Map(generations) };
}

function compileText(text: string, file: string): string {
  const env: Record<string, string> = {};
  for (const [, key = "", value = ""] of text.matchAll(/^# env (\w+)=(.*)$/gm)) env[key] = value;
  const [, now = ""] = /^# now (\S+)$/m.exec(text) ?? [];
  const { policy, sidecars, statuses, recheckAt } = compile(load(text, file), {
    env,
    now: Date.parse(now),
    tokenHashesOf: (namespace, name) => [
      createHash("sha256").update(`token of ${namespace}/${name}`).digest("hex"),
    ],
    guardEndpoint: undefined,
    mockEndpoint: { host: "127.0.0.1", port: 9999, tls: false, basePath: "/v1" },
    service: (type) => plugins.get(type),
  });
  const output = {
    policy: {
      providers: [...policy.providers.keys()],
      agents: [...policy.agentsByTokenHash.values()].map(({ workload }) => workload),
      keys: [...policy.keysByHash.values()].map(({ key }) => `${key.namespace}/${key.name}`),
    },
    sidecars: Object.fromEntries(
      [...sidecars].map(([workload, { specs, environment }]) => [
        workload,
        { bindings: specs.bindings, environment: [...environment.keys()] },
      ]),
    ),
    statuses,
    recheckAt: recheckAt === undefined ? "never" : new Date(recheckAt).toISOString(),
  };
  return stringify(output, { lineWidth: 0, aliasDuplicateObjects: false });
}
