/** Load, killed processes, edits under load, and shutdown: what survives and what is reported. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { begin, call, textOf } from "../support/client.ts";
import { useFixture } from "../support/fixture.ts";
import { load, tally } from "../support/load.ts";
import { agentYaml, providerYaml } from "../support/resources.ts";
import { MODELS } from "../support/samples.ts";
import { alive, freePort, rssMiB, Stack, svc } from "../support/stack.ts";
import { Vendor } from "../support/vendors.ts";
import { Gate, until } from "../support/wait.ts";

const REQUESTS = Number(process.env["SVC_E2E_REQUESTS"] ?? 20_000);
const OPENAI = { dialect: "openai", model: `openai/${MODELS.openai}` } as const;

describe("with a stack", () => {
  const fixture = useFixture();
  const target = (): { port: number; token: string } => ({
    port: fixture.stack.port,
    token: fixture.token,
  });
  const answerAll = (): void => {
    for (const vendor of Object.values(fixture.vendors))
      vendor.always(vendor.says({ text: ["Hello"] }));
  };
  beforeEach(answerAll);

  test(`${REQUESTS} requests at full speed, none fails`, { timeout: 300_000 }, async () => {
    const before = performance.now();
    const asks = [
      OPENAI,
      OPENAI,
      OPENAI,
      { dialect: "anthropic", model: `openai/${MODELS.openai}` },
      { dialect: "openai", model: `openai/${MODELS.openai}`, stream: true },
    ] as const;
    const outcomes = await load({ target: target(), asks, concurrency: 64, limit: REQUESTS })
      .finished;
    const seconds = (performance.now() - before) / 1000;
    expect(tally(outcomes)).toEqual({ 200: REQUESTS });
    expect(fixture.vendors.openai.requests).toHaveLength(REQUESTS);
    await fixture.stack.idle();
    const { gateway, envoy } = fixture.stack.pids();
    console.log(
      `${REQUESTS} requests in ${seconds.toFixed(1)} s ` +
        `(${Math.round(REQUESTS / seconds)}/s with the fakes beside it); ` +
        `RSS gateway ${rssMiB(gateway)} MiB, Envoy ${rssMiB(envoy)} MiB`,
    );
  });

  test(
    "the gateway service killed under load: a clear error, then all is well",
    { timeout: 300_000 },
    async () => {
      const before = fixture.stack.pids();
      const running = load({
        target: target(),
        asks: [OPENAI, { dialect: "gemini", model: `gemini/${MODELS.gemini}` }],
        concurrency: 16,
      });
      await until(() => running.done > 100, { what: "load" });
      process.kill(before.gateway, "SIGKILL");
      await until(() => running.outcomes.some((outcome) => outcome.status !== 200), {
        what: "a refused request",
      });
      await until(
        () => fixture.stack.pids().gateway !== 0 && fixture.stack.pids().gateway !== before.gateway,
        { what: "a new gateway" },
      );
      await fixture.stack.settled();
      const refused = running.done;
      await until(
        () =>
          running.outcomes.slice(refused).filter((outcome) => outcome.status === 200).length > 100,
        { what: "load served again" },
      );
      const outcomes = await running.stop();
      const failed = outcomes.filter((outcome) => outcome.status !== 200);
      console.log("SIGKILL of the gateway under load:", JSON.stringify(tally(outcomes)));
      expect(failed.length).toBeGreaterThan(0);
      for (const { status, text } of failed) {
        expect([500, 502, 503, 504], text).toContain(status);
        const body = JSON.parse(text) as { error: { message: string } };
        expect(body.error.message).toMatch(/\w/);
      }
      expect(fixture.stack.pids().envoy).toBe(before.envoy);
      // No request was sent upstream without the gateway's decision.
      for (const vendor of Object.values(fixture.vendors)) {
        for (const request of vendor.requests)
          expect(JSON.stringify(request.headers)).toContain(vendor.key);
      }
      const after = await load({ target: target(), asks: [OPENAI], concurrency: 8, limit: 200 })
        .finished;
      expect(tally(after)).toEqual({ 200: 200 });
    },
  );

  test(
    "while the gateway service is stopped, requests are refused, not let through",
    { timeout: 300_000 },
    async () => {
      const { gateway } = fixture.stack.pids();
      process.kill(gateway, "SIGKILL");
      // It restarts within moments: every request in between is either refused or served by the new
      // process.
      const outcomes = await load({ target: target(), asks: [OPENAI], concurrency: 4, limit: 100 })
        .finished;
      for (const { status, text } of outcomes) {
        if (status !== 200) expect(JSON.parse(text)).toHaveProperty("error.message");
      }
      expect(fixture.vendors.openai.requests.length).toBe(
        outcomes.filter((outcome) => outcome.status === 200).length,
      );
      await fixture.stack.settled();
    },
  );

  test("Envoy killed: back, and configured", { timeout: 300_000 }, async () => {
    const before = fixture.stack.pids();
    process.kill(before.envoy, "SIGKILL");
    await until(
      () => fixture.stack.pids().envoy !== 0 && fixture.stack.pids().envoy !== before.envoy,
      { what: "a new Envoy" },
    );
    await fixture.stack.settled();
    const answer = await until(async () => call(fixture, OPENAI).catch(() => undefined), {
      what: "an answer",
    });
    expect(answer.status).toBe(200);
    expect(fixture.stack.pids().gateway).toBe(before.gateway);
    expect((await fixture.stack.status()).ready).toBe(true);
    await fixture.stack.idle();
  });

  test(
    "an edit of a ModelProvider under load is live, and no request fails",
    { timeout: 300_000 },
    async () => {
      const { openai } = fixture.vendors;
      const second = await Vendor.start("openai");
      second.always(second.says({ text: ["From the second"] }));
      try {
        const running = load({
          target: target(),
          asks: [OPENAI, { ...OPENAI, stream: true }],
          concurrency: 16,
        });
        await until(() => running.done > 200, { what: "load" });
        const at = performance.now();
        fixture.stack.write("openai.yaml", providerYaml("openai", second));
        const first = await second.request();
        const took = Math.round(first.at - at);
        const moved = openai.requests.length;
        await until(() => second.requests.length > 500, { what: "load at the new place" });
        // And back, ten times, as fast as it takes effect.
        for (let i = 0; i < 10; i++) {
          const to = i % 2 === 0 ? openai : second;
          const seen = to.requests.length;
          fixture.stack.write("openai.yaml", providerYaml("openai", to));
          await until(() => to.requests.length > seen + 20, { what: `edit ${i} to be live` });
        }
        const outcomes = await running.stop();
        console.log(
          `an edit was live after ${took} ms; ${outcomes.length} requests, ${moved} before`,
        );
        expect(tally(outcomes)).toEqual({ 200: outcomes.length });
        for (const request of second.requests)
          expect(request.headers.authorization).toBe(`Bearer ${second.key}`);
        for (const request of openai.requests)
          expect(request.headers.authorization).toBe(`Bearer ${openai.key}`);
      } finally {
        fixture.stack.write("openai.yaml", providerYaml("openai", openai));
        const seen = openai.requests.length;
        await until(async () => {
          await call(fixture, OPENAI);
          return openai.requests.length > seen;
        });
        await second.close();
      }
    },
  );

  test("an edit does not cut a stream under way", async () => {
    const { openai } = fixture.vendors;
    const second = await Vendor.start("openai");
    second.always(second.says({ text: ["From the second"] }));
    try {
      const gate = new Gate();
      openai.next(
        openai.says({ text: ["One", " two"], hold: { gate, before: "content", afterContent: 1 } }),
      );
      const slow = begin(target(), { ...OPENAI, stream: true });
      await gate.reached;
      fixture.stack.write("openai.yaml", providerYaml("openai", second));
      await until(
        async () => textOf("openai", (await call(fixture, OPENAI)).text) === "From the second",
      );
      gate.open();
      const answer = await slow.answer;
      expect(textOf("openai", answer.text)).toBe("One two");
      expect(answer.text).toContain("[DONE]");
    } finally {
      fixture.stack.write("openai.yaml", providerYaml("openai", openai));
      await until(async () => textOf("openai", (await call(fixture, OPENAI)).text) === "Hello");
      await second.close();
    }
  });

  test("a broken edit changes nothing but the status", async () => {
    const { stateDir } = fixture.stack;
    const fine = await svc(["status", "--state-dir", stateDir]);
    expect(fine.code, fine.stdout + fine.stderr).toBe(0);
    const broken: Record<string, [yaml: string, says: RegExp]> = {
      "not YAML": ["kind: [", /openai\.yaml/],
      "an unknown field": [
        providerYaml("openai", fixture.vendors.openai, { spec: { retires: {} } }),
        /retires/,
      ],
      "an unknown kind of provider": [
        providerYaml("openai", fixture.vendors.openai, { kind: "open-ai" }),
        /provider/,
      ],
      "a port that is none": [
        providerYaml("openai", fixture.vendors.openai, { baseURL: "http://127.0.0.1:99999/v1" }),
        /baseURL/,
      ],
    };
    for (const [name, [yaml, says]] of Object.entries(broken)) {
      fixture.stack.write("openai.yaml", yaml);
      const status = await until(
        async () => {
          const ran = await svc(["status", "--state-dir", stateDir]);
          return ran.code === 1 ? ran : undefined;
        },
        { what: `svc status to tell of ${name}` },
      );
      expect(status.stdout, name).toMatch(says);
      expect(status.stderr).toBe("");
      expect(status.stdout).not.toContain(fixture.vendors.openai.key);
      const answer = await call(fixture, OPENAI);
      expect(answer.status, name).toBe(200);
    }
    fixture.stack.write("openai.yaml", providerYaml("openai", fixture.vendors.openai));
    await until(async () => (await svc(["status", "--state-dir", stateDir])).code === 0, {
      what: "the status to be good again",
    });
  });

  test("an agent taken away is refused from then on; one that comes is let in", async () => {
    fixture.stack.write("guest.yaml", agentYaml("guest", ["openai/gpt-4o-mini"]));
    const token = await until(async () => fixture.stack.token("guest").catch(() => undefined), {
      what: "the guest's token",
    });
    const guest = { stack: fixture.stack, token };
    await until(async () => (await call(guest, OPENAI)).status === 200);
    expect((await call(guest, { ...OPENAI, model: "openai/gpt-4o" })).status).not.toBe(200);
    expect(
      (await call(guest, { ...OPENAI, model: "anthropic/claude-sonnet-4-5" })).status,
    ).not.toBe(200);
    fixture.stack.write("guest.yaml", "");
    await until(async () => (await call(guest, OPENAI)).status === 401, {
      what: "the guest to be refused",
    });
    expect((await call(fixture, OPENAI)).status).toBe(200);
  });
});

describe("the end of svc up", () => {
  let vendor: Vendor;
  let stack: Stack;
  let token: string;
  beforeAll(async () => {
    vendor = await Vendor.start("openai");
  });
  beforeEach(async () => {
    vendor.reset();
    stack = await Stack.start({
      files: {
        "all.yaml": `${providerYaml("openai", vendor)}\n---\n${agentYaml("agent", ["openai/*"])}`,
      },
    });
    token = await stack.token("agent");
  });
  afterEach(async () => stack.stop());
  afterAll(async () => vendor.close());

  test("killed, it leaves no orphan behind", { timeout: 300_000 }, async () => {
    const { gateway, envoy, up } = stack.pids();
    expect(alive(gateway) && alive(envoy)).toBe(true);
    process.kill(up, "SIGKILL");
    await until(() => !alive(gateway) && !alive(envoy), {
      what: "the children to end",
    });
  });

  test(
    "killed with a stream under way, it leaves no orphan behind",
    { timeout: 300_000 },
    async () => {
      const gate = new Gate();
      vendor.next(vendor.says({ text: ["One"], hold: { gate, before: "finish" } }));
      const exchange = begin({ port: stack.port, token }, { ...OPENAI, stream: true });
      await gate.reached;
      const { gateway, envoy, up } = stack.pids();
      process.kill(up, "SIGKILL");
      await until(() => !alive(gateway) && !alive(envoy), {
        what: "the children to end",
      });
      gate.open();
      await exchange.answer.catch(() => "broken");
    },
  );

  test(
    "told to stop, it lets a stream under way come to its end",
    { timeout: 300_000 },
    async () => {
      const gate = new Gate();
      vendor.next(
        vendor.says({ text: ["One", " two"], hold: { gate, before: "content", afterContent: 1 } }),
      );
      const exchange = begin({ port: stack.port, token }, { ...OPENAI, stream: true });
      await gate.reached;
      const { gateway, envoy } = stack.pids();
      stack.child.kill("SIGTERM");
      // New clients are refused while the old one is served.
      await until(
        async () =>
          new Promise<boolean>((resolve) => {
            const socket = net.connect(stack.port, "127.0.0.1");
            socket.on("connect", () => {
              socket.destroy();
              resolve(false);
            });
            socket.on("error", () => resolve(true));
          }),
        { what: "the listener to be closed" },
      );
      expect(stack.child.exitCode).toBeNull();
      gate.open();
      const answer = await exchange.answer;
      expect(textOf("openai", answer.text)).toBe("One two");
      expect(answer.text).toContain("[DONE]");
      expect(await stack.exited).toEqual({ code: 0, signal: null });
      expect(alive(gateway) || alive(envoy)).toBe(false);
    },
  );

  test("a second one with the same state folder is refused", async () => {
    const ran = await svc([
      "up",
      "--resources",
      stack.resourcesDir,
      "--port",
      String(await freePort()),
      "--external-port",
      "off",
      "--state-dir",
      stack.stateDir,
    ]);
    expect(ran.code).toBe(1);
    expect(ran.stderr.trim().split("\n")).toHaveLength(1);
    expect(ran.stderr).toContain("--state-dir");
    expect((await fetch(`${stack.baseUrl}/readyz`)).status).toBe(200);
  });
});

describe("a start that cannot be", () => {
  const dir = mkdtempSync(path.join(os.tmpdir(), "svc-e2e-start-"));
  const state = ["--state-dir", path.join(dir, "state")];
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  async function expectOneLine(
    args: readonly string[],
    says: RegExp,
    env: Record<string, string> = {},
  ): Promise<void> {
    const ran = await svc(args, env);
    expect(ran.code).not.toBe(0);
    const lines = `${ran.stdout}${ran.stderr}`.trim().split("\n");
    expect(lines, ran.stderr).toHaveLength(1);
    expect(lines[0]).toMatch(says);
    expect(ran.stderr).not.toMatch(/^\s+at /m);
  }

  test("the port is taken", async () => {
    const server = net.createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as net.AddressInfo;
    await expectOneLine(
      ["up", "--resources", dir, "--port", String(port), "--external-port", "off", ...state],
      new RegExp(`${port}.*--port`),
    );
    await new Promise((resolve) => server.close(resolve));
  });

  test("Envoy is missing", async () => {
    const args = ["up", "--resources", dir, ...state];
    await expectOneLine(args, /ENVOY_PATH/, { ENVOY_PATH: path.join(dir, "no-envoy") });
    const plain = path.join(dir, "plain");
    writeFileSync(plain, "not executable");
    await expectOneLine(args, /ENVOY_PATH/, { ENVOY_PATH: plain });
  });

  test("an Envoy that does not run", { timeout: 300_000 }, async () => {
    const ran = await svc(
      [
        "up",
        "--resources",
        dir,
        "--port",
        String(await freePort()),
        "--external-port",
        "off",
        ...state,
      ],
      { ENVOY_PATH: "/bin/false" },
    );
    expect(ran.code).toBe(1);
    expect(ran.stderr).toMatch(/^svc: /m);
    expect(ran.stderr).not.toMatch(/^\s+at /m);
  });

  test("the folder is none", async () => {
    await expectOneLine(
      ["up", "--resources", path.join(dir, "nowhere"), ...state],
      /nowhere.*--resources/,
    );
    writeFileSync(path.join(dir, "file"), "");
    await expectOneLine(["up", "--resources", path.join(dir, "file"), ...state], /--resources/);
  });

  test("the port is none", async () => {
    await expectOneLine(["up", "--resources", dir, "--port", "99999", ...state], /port/);
  });

  test("nothing runs to ask the status of", async () => {
    await expectOneLine(["status", "--state-dir", path.join(dir, "nobody")], /svc up/);
  });

  test(
    "a folder that holds nothing good serves all the same, and says what is wrong",
    { timeout: 300_000 },
    async () => {
      const stack = await Stack.start({ files: { "bad.yaml": "kind: [" } });
      expect(stack.logs).toContain("bad.yaml");
      expect(stack.logs).not.toMatch(/^\s+at /m);
      expect((await svc(["status", "--state-dir", stack.stateDir])).code).toBe(1);
      await stack.stop();
    },
  );
});
