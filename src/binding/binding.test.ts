/** Which binding a host has. */
import { describe, expect, test } from "vitest";
import type { ProviderInstance, ProviderPlugin } from "../providers/contract.ts";
import { type Binding, compileSnapshot } from "./binding.ts";
import { hostsOf } from "./hosts.ts";

function binding(name: string, ...hosts: readonly string[]): Binding {
  return {
    name,
    hosts,
    plugin: {} as ProviderPlugin,
    instance: {} as ProviderInstance,
    policy: {} as Binding["policy"],
  };
}

describe("the binding of a host", () => {
  const snapshot = compileSnapshot("1", "default/tester", [
    binding("exact", "api.example.com"),
    binding("wide", "*.example.com", "wide.test"),
    binding("narrow", "*.eu.example.com"),
  ]);

  test.each([
    ["api.example.com", "exact"],
    ["other.example.com", "wide"],
    ["a.b.example.com", "wide"],
    ["x.eu.example.com", "narrow"],
    ["a.x.eu.example.com", "narrow"],
    ["eu.example.com", "wide"],
    ["wide.test", "wide"],
    ["x.wide.test", undefined],
    ["example.com", undefined],
    [".example.com", undefined],
    ["badexample.com", undefined],
    ["example.com.evil.test", undefined],
    ["*.example.com", "wide"],
    ["evil.test", undefined],
  ])("%s: %s", (host, name) => {
    expect(snapshot.bindingsOf(host)[0]?.name).toBe(name);
  });

  test("is that of the longest pattern, whatever their order", () => {
    const [wide, narrow] = [
      binding("wide", "*.example.com"),
      binding("narrow", "*.eu.example.com"),
    ];
    for (const bindings of [
      [wide, narrow],
      [narrow, wide],
    ])
      expect(compileSnapshot("1", "w", bindings).bindingsOf("x.eu.example.com")).toEqual([narrow]);
  });

  test("may be of several bindings, in their order", () => {
    const [one, other] = [binding("one", "api.example.com"), binding("other", "api.example.com")];
    for (const bindings of [
      [one, other],
      [other, one],
    ])
      expect(compileSnapshot("1", "w", bindings).bindingsOf("api.example.com")).toEqual(bindings);
  });

  test("a binding may name a host twice", () => {
    const twice = binding("twice", "api.example.com", "api.example.com");
    expect(compileSnapshot("1", "w", [twice]).bindingsOf("api.example.com")).toEqual([twice]);
  });
});

describe("the hosts of a binding", () => {
  const plugin = {
    defaultHosts: ["api.example.com"],
    hostPatterns: ["*.example.com"],
  } as unknown as ProviderPlugin;
  const configured = {
    ...plugin,
    hostsFor: (config: Record<string, string>) =>
      config["host"] === undefined ? undefined : [config["host"]],
  } as ProviderPlugin;

  test.each([
    ["of its spec", { hosts: ["a.test"], config: { host: "b.test" } }, configured, ["a.test"]],
    ["of its settings", { hosts: undefined, config: { host: "b.test" } }, configured, ["b.test"]],
    [
      "of the service",
      { hosts: undefined, config: {} },
      configured,
      ["api.example.com", "*.example.com"],
    ],
    [
      "of a service without settings",
      { hosts: undefined, config: { host: "b.test" } },
      plugin,
      ["api.example.com", "*.example.com"],
    ],
  ] as const)("%s", (_name, spec, of, hosts) => {
    expect(hostsOf(spec as unknown as Parameters<typeof hostsOf>[0], of)).toEqual(hosts);
  });
});
