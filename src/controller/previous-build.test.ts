/**
 * A sidecar and the controller that writes its files may be of two builds: until its pod is
 * replaced, and a task's pod is not. The recorded files are what the controller of the previous
 * build (`PREVIOUS` in e2e/cluster/versions.test.ts) writes for `resources.yaml`.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { loadSpecs } from "../binding/specs.ts";
import { compile } from "../compile/compile.ts";
import { OPTIONS_FILE, sidecarPodOptionsSchema, SPEC_FILE } from "../pod/sidecar-options.ts";
import { planAgent } from "./plan.ts";
import { loadManifests, surroundingsOf, testConfig } from "./testing.ts";

const DIR = fileURLToPath(new URL("./testdata/previous-build/", import.meta.url));
const recorded = (file: string): string => readFileSync(DIR + file, "utf8").trimEnd();

function written(): Readonly<Record<string, string>> {
  const { load, options } = loadManifests(recorded("resources.yaml"));
  const compiled = compile(load, options);
  const [agent] = compiled.resources.agents.values();
  const verdict = compiled.statuses.find(({ kind }) => kind === "Agent");
  if (agent === undefined || verdict === undefined) throw new Error("there is no Agent");
  const { objects } = planAgent(agent, verdict, compiled, surroundingsOf(testConfig()));
  const map = objects.find(({ kind }) => kind.kind === "ConfigMap")?.object;
  return map?.["data"] as Readonly<Record<string, string>>;
}

test("a sidecar of this build reads the files that the previous one wrote", async () => {
  const { specs } = await loadSpecs(DIR + SPEC_FILE);
  expect(specs.bindings.map(({ name }) => name)).toEqual(["github", "aws"]);
  const options = sidecarPodOptionsSchema.parse(JSON.parse(recorded(OPTIONS_FILE)));
  expect(options.workload).toBe("team/writer");
});

// A sidecar refuses a file with a field that it does not know, and goes on with its last one. A new
// field is therefore left out where it has its default, or its effect waits for a new pod.
test.each([SPEC_FILE, OPTIONS_FILE])(
  "for the same objects this build writes the same %s, which sidecars of the previous one read",
  (file) => {
    expect(JSON.parse(written()[file] ?? "")).toEqual(JSON.parse(recorded(file)));
  },
);
