import dgram from "node:dgram";
import { once } from "node:events";
import packet from "dns-packet";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { CapturedLog, FakeClock } from "../../platform/testing.ts";
import type { AgentDns } from "./server.ts";
import { type DnsOptions, startDns } from "./start.ts";

const HOST = "127.0.0.1";

const OPTIONS: Omit<DnsOptions, "listener"> = {
  registry: new Registry(),
  clock: new FakeClock(),
  log: new CapturedLog().log,
  onDefect: (error) => {
    throw error;
  },
  snapshot: () => ({ version: "1", workload: "default/a", bindingsOf: () => [] }),
  names: [{ name: "gateway.svc", addresses: ["10.0.0.7"] }],
  lookUp: () => Promise.resolve([]),
};

test("without a listener there is no DNS server", async () => {
  expect(await startDns({ ...OPTIONS, listener: undefined })).toBeUndefined();
});

test("the server answers and counts with the names of its options", async () => {
  const client = dgram.createSocket("udp4").bind(0, HOST);
  await once(client, "listening");
  const { server, port } = await started();
  client.send(
    packet.encode({ id: 1, questions: [{ name: "gateway.svc", type: "A" }] }),
    port,
    HOST,
  );
  const [reply] = (await once(client, "message")) as [Buffer];
  expect(packet.decode(reply).answers).toMatchObject([{ type: "A", data: "10.0.0.7" }]);
  expect(await OPTIONS.registry.metrics()).toContain(
    'svc_binding_dns_queries_total{type="A",outcome="listed"} 1',
  );
  client.close();
  server.close();
});

/** Starts the server on a port that is free for both transports. */
async function started(): Promise<{ readonly server: AgentDns; readonly port: number }> {
  for (;;) {
    const probe = dgram.createSocket("udp4").bind(0, HOST);
    await once(probe, "listening");
    const { port } = probe.address();
    probe.close();
    await once(probe, "close");
    OPTIONS.registry.clear();
    const server = await startDns({ ...OPTIONS, listener: { address: HOST, port } }).catch(
      () => undefined,
    );
    if (server !== undefined) return { server, port };
  }
}
