import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { BackendTarget } from "./backend.ts";
import { clusterOf } from "./target.ts";

let home: string;

beforeEach(() => {
  home = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
});
afterEach(() => {
  rmSync(home, { recursive: true });
});

type Env = Readonly<Record<string, string>>;

/** Returns the target that is chosen for a user whose home has the named parts. */
function chosen(has: readonly string[], target: BackendTarget, more: Env = {}): string {
  if (has.includes("kubeconfig")) {
    mkdirSync(path.join(home, ".kube"));
    writeFileSync(path.join(home, ".kube/config"), "");
  }
  if (has.includes("state")) mkdirSync(path.join(home, "state/svc"), { recursive: true });
  const env = { HOME: home, XDG_STATE_HOME: path.join(home, "state"), ...more };
  const cluster = clusterOf(target, env);
  if (cluster === undefined) return "svc up";
  return `${cluster.context ?? "current"} ${cluster.systemNamespace}`;
}

test.each<[string, readonly string[], BackendTarget, Env, string]>([
  ["nothing", [], {}, {}, "svc up"],
  ["a kubeconfig alone", ["kubeconfig"], {}, {}, "current svc-system"],
  ["a state folder besides, whatever runs", ["kubeconfig", "state"], {}, {}, "svc up"],
  ["--context", ["state"], { context: "prod" }, {}, "prod svc-system"],
  ["--kubeconfig", ["state"], { kubeconfig: "/x" }, {}, "current svc-system"],
  ["--state-dir before SVC_CONTEXT", [], { stateDir: "/x" }, { SVC_CONTEXT: "prod" }, "svc up"],
  ["SVC_CONTEXT", ["state"], {}, { SVC_CONTEXT: "prod" }, "prod svc-system"],
  ["an empty SVC_CONTEXT", ["state"], {}, { SVC_CONTEXT: "" }, "svc up"],
  ["--context before SVC_CONTEXT", [], { context: "a" }, { SVC_CONTEXT: "b" }, "a svc-system"],
  ["SVC_STATE_DIR", ["kubeconfig"], {}, { SVC_STATE_DIR: "/x" }, "svc up"],
  ["KUBECONFIG that names no file", ["kubeconfig"], {}, { KUBECONFIG: "/none" }, "svc up"],
  ["another namespace", [], { context: "a", systemNamespace: "infra" }, {}, "a infra"],
  ["its variable", [], { context: "a" }, { SVC_SYSTEM_NAMESPACE: "infra" }, "a infra"],
])("%s", (_name, has, target, env, expected) => {
  expect(chosen(has, target, env)).toBe(expected);
});

test("a flag for each is an error", () => {
  expect(() => clusterOf({ stateDir: "/x", context: "a" }, {})).toThrow("use one of them");
});
