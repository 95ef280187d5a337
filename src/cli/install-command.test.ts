import { beforeEach, expect, test } from "vitest";
import { CliWorld } from "./testing.ts";

let world: CliWorld;
beforeEach(() => {
  world = new CliWorld();
});

test("upgrades or installs the chart of the package", async () => {
  const { code } = await world.run("install", "-f", "a.yaml", "--set", "x=1", "--set", "y=2");
  expect(code).toBe(0);
  expect(world.programs).toEqual([
    [
      ["helm", "upgrade", "--install", "svc", "/nowhere/charts/svc"],
      ["--namespace", "svc-system", "--create-namespace"],
      ["--values", "a.yaml", "--set", "x=1", "--set", "y=2"],
    ].flat(),
  ]);
});

test("--dry-run renders it, and the target is passed on", async () => {
  world.env = { SVC_HELM: "/opt/helm" };
  const target = ["--context", "prod", "--kubeconfig", "k"];
  await world.run("install", "--dry-run", "-n", "infra", ...target);
  expect(world.programs).toEqual([
    [
      ["/opt/helm", "template", "svc", "/nowhere/charts/svc", "--namespace", "infra"],
      ["--kube-context", "prod", "--kubeconfig", "k"],
    ].flat(),
  ]);
});

test("the context of the environment is used", async () => {
  world.env = { SVC_CONTEXT: "prod" };
  await world.run("install");
  expect(world.programs[0]).toEqual(expect.arrayContaining(["--kube-context", "prod"]));
});

test.each([
  [undefined, "svc: helm was not found. Install Helm"],
  [3, "svc: helm failed with exit code 3"],
])("exit code %s of Helm", async (exitCode, words) => {
  world.programCode = exitCode;
  const { code, stderr } = await world.run("install");
  expect([code, stderr]).toEqual([1, expect.stringContaining(words)]);
});
