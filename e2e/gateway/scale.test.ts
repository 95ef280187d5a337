/**
 * A thousand ModelProviders and five thousand Agents. Times and memory are printed without bounds,
 * because machines differ.
 */
import { expect, test } from "vitest";
import { call } from "../support/client.ts";
import { load, tally } from "../support/load.ts";
import { agentYaml, providerYaml } from "../support/resources.ts";
import { rssMiB, Stack } from "../support/stack.ts";
import { Vendor } from "../support/vendors.ts";

const PROVIDERS = 1_000;
const AGENTS = 5_000;
const PER_FILE = 100;

function chunks(count: number, one: (i: number) => string): string[] {
  return Array.from({ length: Math.ceil(count / PER_FILE) }, (_, file) =>
    Array.from({ length: Math.min(PER_FILE, count - file * PER_FILE) }, (_unused, i) =>
      one(file * PER_FILE + i),
    ).join("\n---\n"),
  );
}

test(`${PROVIDERS} ModelProviders and ${AGENTS} Agents`, { timeout: 180_000 }, async () => {
  const vendor = await Vendor.start("openai");
  const second = await Vendor.start("openai");
  for (const fake of [vendor, second]) fake.always(fake.says({ text: ["Hello"] }));
  const files: Record<string, string> = {};
  chunks(PROVIDERS, (i) => providerYaml(`p${i}`, vendor)).forEach(
    (text, i) => (files[`providers-${i}.yaml`] = text),
  );
  chunks(AGENTS, (i) =>
    agentYaml(`a${i}`, [`p${i % PROVIDERS}/*`, `p${(i + 1) % PROVIDERS}/gpt-4o`]),
  ).forEach((text, i) => (files[`agents-${i}.yaml`] = text));
  const startedAt = performance.now();
  const stack = await Stack.start({ files, readyTimeoutMs: 90_000 });
  const readyMs = performance.now() - startedAt;
  try {
    const token = await stack.token("a4999");
    const ask = { dialect: "openai", model: "p999/gpt-4o-mini" } as const;
    expect((await call({ stack, token }, ask)).status).toBe(200);
    const status = await stack.status();
    expect(status.objects.filter((object) => object.ready).length).toBeGreaterThanOrEqual(
      PROVIDERS + AGENTS,
    );

    // An edit of one among them, under load.
    const running = load({ target: { port: stack.port, token }, asks: [ask], concurrency: 4 });
    const editedAt = performance.now();
    stack.write(
      "providers-9.yaml",
      chunks(PROVIDERS, (i) => providerYaml(`p${i}`, i === 999 ? second : vendor)).at(-1) ?? "",
    );
    const live = (await second.request()).at - editedAt;
    const edited = await running.stop();
    expect(tally(edited)).toEqual({ 200: edited.length });

    const { gateway, envoy } = stack.pids();
    const before = performance.now();
    const outcomes = await load({
      target: { port: stack.port, token },
      asks: [ask],
      concurrency: 16,
      limit: 3_000,
    }).finished;
    const rate = 3_000 / ((performance.now() - before) / 1000);
    expect(tally(outcomes)).toEqual({ 200: 3_000 });
    console.log(
      `${PROVIDERS} providers, ${AGENTS} agents: ready in ${(readyMs / 1000).toFixed(1)} ` +
        `s, an edit live in ${(live / 1000).toFixed(2)} s, ` +
        `${Math.round(rate)} requests/s; RSS gateway ${rssMiB(gateway)} MiB, Envoy ` +
        `${rssMiB(envoy)} MiB`,
    );
  } finally {
    await stack.stop();
    await vendor.close();
    await second.close();
  }
});
