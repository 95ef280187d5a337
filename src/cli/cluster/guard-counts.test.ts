/** Counts of guards over several gateways' pods, with an API server in memory. */
import { beforeEach, afterEach, expect, test } from "vitest";
import type { ChecksByLabel } from "../../gateway/guard-counts.ts";
import type { ObjectView } from "../backend.ts";
import { withGuardCounts } from "./guard-counts.ts";
import { GATEWAY_STATUS, FakeInstallation } from "./testing.ts";

let installation: FakeInstallation;

beforeEach(async () => {
  installation = await FakeInstallation.start();
});

afterEach(() => installation.close());

const checks = (more: Partial<ChecksByLabel>): ChecksByLabel => ({
  benign: 0,
  injection: 0,
  jailbreak: 0,
  unavailable: 0,
  ...more,
});

const binding = (name: string): ObjectView => ({
  apiVersion: "svc.io/v1",
  kind: "GuardBinding",
  metadata: { namespace: "team", name },
  spec: {},
  status: { ready: true, reason: "Ready", message: "" },
});

const counted = async () =>
  (await withGuardCounts(installation.session, [binding("a"), binding("b")])).map(
    ({ status: { checks: all, flagged, unavailable } }) => [all, flagged, unavailable],
  );

const gateway = (pod: string, guards: Readonly<Record<string, ChecksByLabel>>) =>
  installation.gateway(pod, { ...GATEWAY_STATUS, guards });

test("are sums, of the namespace's own bindings", async () => {
  installation.pod("gw-2");
  gateway("gw-1", { "team/a": checks({ benign: 5, injection: 1 }), "other/b": checks({}) });
  gateway("gw-2", { "team/a": checks({ jailbreak: 1, unavailable: 2 }) });
  expect(await counted()).toEqual([
    [9, 2, 2],
    [0, 0, 0],
  ]);
});

test("are not known if one of the pods does not answer", async () => {
  installation.pod("gw-2");
  gateway("gw-1", { "team/a": checks({ benign: 5 }) });
  installation.gateway("gw-2", { message: "no route" }, 503);
  expect(await counted()).toEqual([
    [undefined, undefined, undefined],
    [undefined, undefined, undefined],
  ]);
});

test("are not known of a gateway of an earlier version", async () => {
  const { guards: _guards, ...earlier } = GATEWAY_STATUS as { guards?: unknown };
  installation.gateway("gw-1", earlier);
  expect((await counted())[0]).toEqual([undefined, undefined, undefined]);
});

test("of no bindings ask nobody", async () => {
  expect(await withGuardCounts(installation.session, [])).toEqual([]);
  expect(installation.api.requests).toEqual([]);
});
