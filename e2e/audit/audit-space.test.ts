/**
 * The audit chain on a real volume of a few MiB: its behaviour while the volume fills up, to the
 * last byte, and its recovery once there is space again, with a chain that verifies.
 */
import https from "node:https";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { agentYaml, providerYaml } from "../support/resources.ts";
import { Outside } from "../support/services.ts";
import { Sidecar } from "../support/sidecar.ts";
import { MIB, SmallVolume } from "../support/small-volume.ts";
import { Stack, svc } from "../support/stack.ts";
import { Vendor } from "../support/vendors.ts";
import { Gate, until } from "../support/wait.ts";

const LOW = 8 * MIB;
const FULL = 4 * MIB;

let vendor: Vendor;

beforeAll(async () => {
  vendor = await Vendor.start("openai");
});

afterAll(() => vendor.close());

beforeEach(() => {
  vendor.reset();
  vendor.always(vendor.says({ text: ["ok"] }));
});

interface World {
  readonly volume: SmallVolume;
  readonly stack: Stack;
  readonly ask: (body?: Readonly<Record<string, unknown>>) => Promise<Response>;
  /** Waits until the gateway reports the state of its chain. */
  readonly space: (state: string) => Promise<void>;
}

async function start(onFailure: "refuse" | "continue"): Promise<World> {
  const volume = new SmallVolume(24 * MIB);
  const stack = await Stack.start({
    files: { "p.yaml": providerYaml("p", vendor), "a.yaml": agentYaml("a", ["p/*"]) },
    args: [
      ["--audit-dir", path.join(volume.dir, "audit"), "--audit-on-failure", onFailure],
      ["--audit-low-space", "8MiB", "--audit-full-space", "4MiB", "--concurrency", "1"],
    ].flat(),
  }).catch((error: unknown) => {
    volume.unmount();
    throw error;
  });
  const token = await stack.token("a");
  return {
    volume,
    stack,
    ask: (body = {}) =>
      fetch(`${stack.baseUrl}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: "p/gpt-5",
          messages: [{ role: "user", content: "hi" }],
          ...body,
        }),
      }),
    space: async (state) => {
      await until(
        async () => {
          const status = (await stack.status()) as { readonly audit?: { readonly state: string } };
          return status.audit?.state === state;
        },
        { what: `the chain's state to be ${state}` },
      );
    },
  };
}

async function verified({ volume }: World): Promise<string> {
  const ran = await svc(["audit", "verify", path.join(volume.dir, "audit")]);
  expect(ran.code, ran.stdout + ran.stderr).toBe(0);
  return ran.stdout;
}

const count = ({ volume }: World, type: string): number =>
  volume.records("gateway").filter((record) => record.type === type).length;

describe("what cannot be recorded is refused", () => {
  let world: World;
  beforeAll(async () => {
    world = await start("refuse");
  });
  afterAll(async () => {
    await world?.stack.stop();
    world?.volume.unmount();
  });

  test("with space for all: everything has a record of its own", async () => {
    await world.space("ok");
    expect((await world.ask()).status).toBe(200);
    expect((await world.ask({ model: "gone/m" })).status).toBe(404);
    await until(() => count(world, "LLM_REFUSED") === 1, { what: "the refusal's record" });
    expect(count(world, "LLM_CALL")).toBe(1);
  });

  test("low: calls are recorded, refusals are counted", async () => {
    world.volume.leave((LOW + FULL) / 2);
    await world.space("low");
    expect((await world.ask({ model: "gone/m" })).status).toBe(404);
    expect((await world.ask()).status).toBe(200);
    expect(count(world, "LLM_CALL")).toBe(2);
    expect(count(world, "LLM_REFUSED")).toBe(1);
    const metrics = await world.stack.metrics();
    expect(metrics.sum("svc_audit_space", { state: "low" })).toBe(1);
    expect(metrics.sum("svc_audit_refusals_left_out_total", { reason: "space" })).toBe(1);
    expect(metrics.sum("svc_audit_free_bytes")).toBeLessThan(LOW);
  });

  test("full: nothing new begins, what is under way ends and is recorded", async () => {
    const gate = new Gate();
    vendor.reset();
    vendor.always(vendor.says({ text: ["o", "k"], hold: { gate, before: "end" } }));
    const under = world.ask({ stream: true });
    await gate.reached;
    world.volume.leave(FULL / 2);
    await world.space("full");
    const refused = await world.ask();
    expect(refused.status).toBe(503);
    expect(await refused.text()).toContain("audit_unavailable");
    expect(vendor.requests).toHaveLength(1);
    const { stdout } = await svc(["status", "--state-dir", world.stack.stateDir]);
    expect(stdout).toMatch(
      /Audit chain: FULL.*free.*refusals without a record of their own: space/,
    );
    gate.open();
    expect(await (await under).text()).toContain("[DONE]");
    expect(count(world, "LLM_CALL")).toBe(3);
  });

  test("and goes on by itself when there is space, without a loss", async () => {
    world.volume.empty();
    await world.space("ok");
    expect((await world.ask()).status).toBe(200);
    expect(await verified(world)).not.toContain("could not be written");
  });

  test("to the last byte, in the middle of calls: those without a record fail, and the chain goes on", async () => {
    const before = count(world, "LLM_CALL");
    const gate = new Gate();
    vendor.reset();
    vendor.always(vendor.says({ text: ["o", "k"], hold: { gate, before: "end" } }));
    // More than fits into the rest of the file's last page.
    const under = Array.from({ length: 20 }, async () =>
      (await world.ask({ stream: true })).text(),
    );
    await until(() => vendor.requests.length === 20, { what: "all calls to be under way" });
    world.volume.leave(0);
    await world.space("full");
    gate.open();
    const ends = await Promise.allSettled(under);
    const whole = ends.filter((end) => end.status === "fulfilled" && end.value.includes("[DONE]"));
    expect(whole.length).toBeLessThan(20);
    expect(count(world, "LLM_CALL")).toBe(before + whole.length);
    vendor.always(vendor.says({ text: ["ok"] }));
    expect((await world.ask()).status).toBe(503);
    world.volume.empty();
    await world.space("ok");
    expect((await world.ask()).status).toBe(200);
    await until(() => count(world, "CHAIN.GAP") > 0, { what: "the gap to be told" });
    expect(await verified(world)).toContain("could not be written");
  });

  test("what was left out is told when the gateway stops, and the chain is closed", async () => {
    await world.stack.shutDown();
    const told = world.volume.records("gateway").filter(({ type }) => type === "REFUSALS_LEFT_OUT");
    const counts = told.map(({ fields }) => fields["codes"] as Record<string, number>);
    const sum = (code: string): number =>
      counts.reduce((total, codes) => total + (codes[code] ?? 0), 0);
    expect([sum("model_not_found"), sum("audit_unavailable")]).toEqual([1, 2]);
    expect(await verified(world)).toContain("closed and signed");
  });
});

test("with --audit-on-failure continue calls go on, and the chain tells what it lost", async () => {
  const world = await start("continue");
  try {
    world.volume.leave(FULL / 2);
    await world.space("full");
    expect((await world.ask()).status).toBe(200);
    expect(count(world, "LLM_CALL")).toBe(1);
    world.volume.leave(0);
    const lost = async (): Promise<number> =>
      (await world.stack.metrics()).sum("svc_audit_lost_total");
    await until(
      async () => {
        expect((await world.ask()).status).toBe(200);
        return (await lost()) > 0;
      },
      { what: "a record to be lost" },
    );
    world.volume.empty();
    await world.space("ok");
    expect((await world.ask()).status).toBe(200);
    await until(() => count(world, "CHAIN.GAP") > 0, { what: "the gap to be told" });
    expect(await verified(world)).toContain("could not be written");
  } finally {
    await world.stack.stop();
    world.volume.unmount();
  }
});

test("a sidecar on a volume that is full lets nothing out, and goes on when there is space", async () => {
  const host = "discord.com";
  const volume = new SmallVolume(24 * MIB);
  const outside = await Outside.start([host]);
  const sidecar = await Sidecar.start({
    outside,
    bindings: [
      {
        name: "chat",
        type: "discord",
        auth: { type: "token", env: { token: "SVC_SECRET_CHAT_TOKEN" } },
        config: {},
        policy: { allow: ["messages:read"], deny: [], httpRules: [] },
        scope: {},
        audit: { enforcement: "enforce", logRequests: false },
      },
    ],
    secrets: { SVC_SECRET_CHAT_TOKEN: "bot-token-0123456789" },
    options: {
      audit: {
        dir: path.join(volume.dir, "audit"),
        keyFile: path.join(volume.dir, "audit.key"),
        writer: "sidecar",
        onFailure: "refuse",
        sync: "group",
        space: { low: { kind: "bytes", bytes: LOW }, full: { kind: "bytes", bytes: FULL } },
      },
    },
  });
  const ask = (method: string): Promise<{ readonly status: number; readonly text: string }> =>
    new Promise((resolve, reject) => {
      const { httpsPort: port, bundle: ca } = sidecar;
      const request = https.request(
        {
          host: "127.0.0.1",
          port,
          ca,
          servername: host,
          agent: false,
          method,
          path: "/api/v10/channels/1/messages",
          headers: { host },
        },
        (response) => {
          let text = "";
          response.on("data", (part: Buffer) => (text += part.toString()));
          response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
        },
      );
      request.on("error", reject).end();
    });
  const space = async (state: string): Promise<void> => {
    const shown = new RegExp(`^svc_audit_space\\{state="${state}"\\} 1$`, "m");
    await until(async () => shown.test((await sidecar.admin("/metrics")).body), { what: state });
  };
  const records = (allowed: boolean): number =>
    volume.records("sidecar").filter(({ fields }) => fields["allowed"] === allowed).length;
  try {
    expect((await ask("GET")).status).toBe(200);
    volume.leave((LOW + FULL) / 2);
    await space("low");
    expect((await ask("POST")).status).toBe(403);
    expect((await ask("GET")).status).toBe(200);
    expect([records(true), records(false)]).toEqual([2, 0]);
    volume.leave(FULL / 2);
    await space("full");
    const refused = await ask("GET");
    expect(refused.status).toBe(503);
    expect(refused.text).toContain("audit_unavailable");
    expect(outside.requests).toHaveLength(2);
    volume.empty();
    await space("ok");
    expect((await ask("GET")).status).toBe(200);
    expect(records(true)).toBe(3);
    const ran = await svc(["audit", "verify", path.join(volume.dir, "audit")]);
    expect(ran.code, ran.stdout + ran.stderr).toBe(0);
  } finally {
    await sidecar.stop();
    await outside.close();
    volume.unmount();
  }
});
