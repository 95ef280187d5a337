/**
 * Two replicas of the gateway that share Redis: a replica that is killed, a rollout and a smaller
 * scale, while streams are open and calls go on. No stream is cut, and limits stay what they are.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { install, manifest, secret, SYSTEM, uninstall } from "../support/cluster/installation.ts";
import { attachLab, type Lab } from "../support/cluster/lab.ts";
import { until } from "../support/wait.ts";

const namespace = `gateway-${randomBytes(4).toString("hex")}`;
/** Chunks of a long stream, and the time between two in milliseconds. */
const CHUNKS = 60;
const PAUSE_MS = 200;
let lab: Lab;
let upstream: http.Server;
let base: string;
const tokens = new Map<string, string>();

const kubectl = (...args: readonly string[]): Promise<string> =>
  lab.kubectl(["--namespace", namespace, ...args]);
const system = (...args: readonly string[]): Promise<string> =>
  lab.kubectl(["--namespace", SYSTEM, ...args]);

/** A model in OpenAI's form: `long` streams for a while, everything else answers at once. */
function serve(request: http.IncomingMessage, response: http.ServerResponse): void {
  let body = "";
  request.setEncoding("utf8").on("data", (part: string) => (body += part));
  request.on("end", () => {
    const { model, stream } = JSON.parse(body) as { model: string; stream?: boolean };
    const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
    const common = { id: "chatcmpl-1", created: 1, model };
    if (stream !== true) {
      const message = { role: "assistant", content: "short" };
      response.writeHead(200, { "content-type": "application/json" }).end(
        JSON.stringify({
          ...common,
          object: "chat.completion",
          choices: [{ index: 0, message, finish_reason: "stop" }],
          usage,
        }),
      );
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    let sent = 0;
    const send = (value: object): void => void response.write(`data: ${JSON.stringify(value)}\n\n`);
    const chunk = (delta: object, finish: string | null) => ({
      ...common,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
    const timer = setInterval(() => {
      sent += 1;
      if (sent <= CHUNKS) return send(chunk({ content: `${sent} ` }, null));
      clearInterval(timer);
      send(chunk({}, "stop"));
      send({ ...common, object: "chat.completion.chunk", choices: [], usage });
      response.end("data: [DONE]\n\n");
    }, PAUSE_MS);
    response.on("close", () => clearInterval(timer));
  });
}

const call = (
  agent: string,
  model: string,
  stream: boolean,
  signal: AbortSignal | null = null,
): Promise<Response> =>
  fetch(`${base}/v1/chat/completions`, {
    method: "POST",
    signal,
    headers: {
      authorization: `Bearer ${tokens.get(agent)}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ model, stream, messages: [{ role: "user", content: "Hello" }] }),
  });

/** Opens streams, and resolves when each has begun; `texts` resolves with all of them. */
async function openStreams(count: number): Promise<{ readonly texts: Promise<string[]> }> {
  const responses = await Promise.all(
    Array.from({ length: count }, () => call("caller", "slow/long", true)),
  );
  expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 200));
  return { texts: Promise.all(responses.map((response) => response.text())) };
}

function expectWhole(texts: readonly string[]): void {
  for (const text of texts) {
    expect(text.match(/"content":"\d+ "/g)).toHaveLength(CHUNKS);
    expect(text).toContain("data: [DONE]");
  }
}

/** Calls all the time until it is stopped; returns what went wrong. */
function load(): { readonly stop: () => Promise<{ calls: number; failures: string[] }> } {
  const stopped = new AbortController();
  let calls = 0;
  const failures: string[] = [];
  const one = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      calls += 1;
      try {
        const response = await call("caller", "slow/short", false);
        const text = await response.text();
        if (response.status !== 200) failures.push(`${response.status} ${text}`);
      } catch (error) {
        const { cause, message } = error as Error;
        failures.push(cause instanceof Error ? cause.message : message);
      }
    }
  };
  const loops = [one(), one(), one()];
  return {
    stop: async () => {
      stopped.abort();
      await Promise.all(loops);
      return { calls, failures };
    },
  };
}

const readyPods = async (): Promise<readonly string[]> => {
  const text = await system(
    "get",
    "endpointslices",
    "--selector=kubernetes.io/service-name=svc-gateway",
    "--output=jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].targetRef.name}",
  );
  return text.split(" ").filter((name) => name !== "");
};

beforeAll(async () => {
  lab = attachLab();
  upstream = http.createServer(serve).listen(0, lab.hostAddress);
  await once(upstream, "listening");
  const { port } = upstream.address() as AddressInfo;
  await install(lab, {
    values: {
      "gateway.replicas": 2,
      // A busy node takes its time to see that a replica is going.
      "gateway.drainDelaySeconds": 10,
      "redis.enabled": true,
      "redis.image.registry": "localhost",
      "redis.image.repository": "redis",
      "redis.image.tag": "dev",
    },
  });
  await lab.kubectl(["create", "namespace", namespace]);
  const agent = (name: string, rateLimits: object) =>
    manifest("Agent", name, {
      image: "localhost/agent:dev",
      replicas: 0,
      models: ["slow/long", "slow/short"],
      rateLimits,
    });
  await lab.kubectl(
    ["--namespace", namespace, "apply", "-f", "-"],
    [
      secret("slow", { key: "sk-test" }),
      manifest("ModelProvider", "slow", {
        provider: "openai-compatible",
        baseURL: `http://${lab.hostAddress}:${port}/v1`,
        apiKeySecretRef: { name: "slow", key: "key" },
      }),
      agent("caller", {}),
      agent("limited", { requestsPerMinute: 40 }),
    ].join(""),
  );
  await kubectl("wait", "--for=condition=Ready", "modelprovider/slow", "--timeout=180s");
  for (const name of ["caller", "limited"]) {
    await kubectl("wait", "--for=condition=Ready", `agent/${name}`, "--timeout=180s");
    const token = await kubectl("get", `secret/svc-token-${name}`, "-o", "jsonpath={.data.token}");
    tokens.set(name, Buffer.from(token, "base64").toString());
  }
  const address = await system("get", "service/svc-gateway", "-o", "jsonpath={.spec.clusterIP}");
  base = `http://${address}:8000`;
  await until(async () => (await call("caller", "slow/short", false)).status === 200, {
    what: "the first call",
  });
});

afterAll(async () => {
  await lab.kubectl(["delete", "namespace", namespace, "--ignore-not-found"]);
  await uninstall(lab);
  upstream.close();
  upstream.closeAllConnections();
});

test("a rollout cuts no stream and fails no call", async () => {
  const traffic = load();
  const streams = await openStreams(12);
  await system("rollout", "restart", "deployment/svc-gateway");
  await system("rollout", "status", "deployment/svc-gateway", "--timeout=180s");
  expectWhole(await streams.texts);
  const { calls, failures } = await traffic.stop();
  expect(failures).toEqual([]);
  expect(calls).toBeGreaterThan(20);
});

test("a limit is one limit for both replicas, also while one of them is killed", async () => {
  const [victim = ""] = await readyPods();
  const statuses: number[] = [];
  // The network of a killed pod may be gone before its connections are closed.
  const gone = (): AbortSignal => AbortSignal.timeout(10_000);
  const one = async (): Promise<void> => {
    for (let i = 0; i < 20; i += 1)
      statuses.push(
        await call("limited", "slow/short", false, gone()).then(
          async (response) => (await response.text(), response.status),
          () => 0,
        ),
      );
  };
  const calls = Promise.all([one(), one(), one(), one()]);
  await system("delete", "pod", victim, "--grace-period=0", "--force");
  await calls;
  const passed = statuses.filter((status) => status === 200).length;
  const refused = statuses.filter((status) => status === 429).length;
  // What was admitted by the killed replica may have got no answer.
  expect(passed).toBeLessThanOrEqual(40);
  expect(passed).toBeGreaterThan(20);
  expect(refused).toBeGreaterThan(10);
  await system("rollout", "status", "deployment/svc-gateway", "--timeout=180s");
});

test("a scale-down cuts no stream and fails no call", async () => {
  await until(async () => (await readyPods()).length === 2, { what: "two ready replicas" });
  const traffic = load();
  const streams = await openStreams(12);
  await system("scale", "deployment/svc-gateway", "--replicas=1");
  await until(async () => (await readyPods()).length === 1, { what: "one ready replica" });
  expectWhole(await streams.texts);
  const { failures } = await traffic.stop();
  expect(failures).toEqual([]);
});

test("one of the replicas writes the statuses, with what both have counted", async () => {
  await until(
    async () =>
      Number(await kubectl("get", "agent/limited", "-o", "jsonpath={.status.requestsToday}")) >= 20,
    { what: "requestsToday" },
  );
});
