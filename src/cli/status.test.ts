import { describe, expect, test } from "vitest";
import type { GatewayStatus } from "../gateway/status.ts";
import type { PublishedStatus } from "../policy/status.ts";
import { renderStatus } from "./status.ts";
import { table } from "./table.ts";

const status = (more: Partial<GatewayStatus>): GatewayStatus => ({
  ready: true,
  reason: undefined,
  policyVersion: "1",
  activeCalls: 0,
  objects: [],
  problems: [],
  envoys: [],
  ...more,
});

const object = (name: string, more: Partial<PublishedStatus> = {}): PublishedStatus => ({
  kind: "Agent",
  namespace: "default",
  name,
  ready: true,
  reason: "Ready",
  message: "",
  conditions: [],
  ...more,
});

describe("table", () => {
  test("is as wide as its widest cells, without space at a line's end", () => {
    expect(
      table(
        ["A", "NAME"],
        [
          ["long", "x"],
          ["b", ""],
        ],
      ),
    ).toBe("A     NAME\nlong  x\nb");
    expect(table(["A", "B"], [])).toBe("A  B");
  });
});

describe("renderStatus", () => {
  test("lists every object of a few", () => {
    const broken = object("b", {
      kind: "ModelProvider",
      ready: false,
      reason: "SecretDoesNotExist",
      message: "no Secret keys",
    });
    expect(renderStatus(status({ objects: [object("a"), broken] }))).toBe(
      [
        "KIND           NAME       READY  REASON              MESSAGE",
        "Agent          default/a  yes    Ready",
        "ModelProvider  default/b  no     SecretDoesNotExist  no Secret keys",
      ].join("\n"),
    );
  });

  test("of many only those that want attention, and how many there are", () => {
    const many = Array.from({ length: 20 }, (_, i) => object(`a${i}`));
    expect(renderStatus(status({ objects: many })).split("\n")).toHaveLength(21);
    const more = [
      ...many,
      object("odd", { ready: true, reason: "DegradedModels", message: "one" }),
      object("bad", { ready: false, reason: "InvalidSpec" }),
    ];
    const lines = renderStatus(status({ objects: more })).split("\n");
    expect(lines).toHaveLength(4);
    expect(lines[1]).toContain("default/odd");
    expect(lines[2]).toContain("default/bad");
    expect(lines[3]).toBe("22 objects, 21 ready.");
  });

  test("many that are all well are one line", () => {
    const many = Array.from({ length: 21 }, (_, i) => object(`a${i}`));
    expect(renderStatus(status({ objects: many }))).toBe("21 objects, 21 ready.");
  });

  test("problems, refusals of Envoy, and why it is not ready", () => {
    const nacks = [{ type: "listener", message: "bad port" }];
    const text = renderStatus(
      status({
        ready: false,
        reason: "Envoy has not taken the configuration yet",
        problems: ["a.yaml: bad"],
        envoys: [
          { node: "svc-1", inSync: false, nacks } as unknown as GatewayStatus["envoys"][number],
        ],
      }),
    );
    expect(text).toContain("Not in use as written:\n  a.yaml: bad");
    expect(text).toContain("Envoy svc-1 refused a listener: bad port");
    expect(text.endsWith("Not ready: Envoy has not taken the configuration yet.")).toBe(true);
  });

  test("nothing to say is nothing", () => {
    expect(renderStatus(status({}))).toBe("");
  });

  test.each([
    ["ok", { rate: 0, space: 0, failure: 0 }, "Audit chain: ok; 75.9 GiB free; 1.0 MiB used."],
    [
      "low",
      { rate: 7, space: 12, failure: 0 },
      "Audit chain: LOW on space, refusals are only counted; 75.9 GiB free; 1.0 MiB used; " +
        "refusals without a record of their own: rate 7, space 12.",
    ],
    [
      "full",
      { rate: 0, space: 0, failure: 0 },
      "Audit chain: FULL, only space for calls under way is left: free space, or archive " +
        "segments; 75.9 GiB free; 1.0 MiB used.",
    ],
    [
      "failing",
      { rate: 0, space: 0, failure: 3 },
      "Audit chain: FAILING, it cannot be written: see the gateway's log for the reason; " +
        "75.9 GiB free; 1.0 MiB used; refusals without a record of their own: failure 3.",
    ],
  ] as const)("the audit chain: %s", (state, refusalsLeftOut, expected) => {
    const audit = { state, freeBytes: 81_500_000_000, chainsBytes: 1_048_576, refusalsLeftOut };
    expect(renderStatus(status({ audit }))).toBe(`\n${expected}`);
  });

  test("an audit chain whose volume is not measured", () => {
    const refusalsLeftOut = { rate: 0, space: 0, failure: 0 };
    const audit = { state: "ok", freeBytes: undefined, chainsBytes: undefined } as const;
    expect(renderStatus(status({ audit: { ...audit, refusalsLeftOut } }))).toBe(
      "\nAudit chain: ok.",
    );
  });
});
