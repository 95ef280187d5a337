import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import { inspect } from "node:util";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test } from "vitest";
import type { ClassifierPolicy } from "../policy/snapshot.ts";
import { Secret } from "../platform/secret.ts";
import { ClassifierClient, type ClassifierVerdict } from "./classifier-client.ts";
import { answerOf } from "./protocol.ts";
import { classifierPolicy, scores } from "./testing.ts";
import {
  bodyReply,
  type ClassifierReply,
  scoresReply,
  TestClassifier,
  until,
} from "./testing-server.ts";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

/** Longer than any answer of a server of the test, and never waited for. */
const LONG = 60_000;
const noTrust = (): SecureContext => {
  throw new Error("no TLS here");
};

async function start(reply?: ClassifierReply): Promise<TestClassifier> {
  const server = await TestClassifier.start();
  open.push(() => server.close());
  if (reply !== undefined) server.reply = reply;
  return server;
}

function clientOf(
  url: string,
  overrides: Partial<ClassifierPolicy> = {},
  trust = noTrust,
): ClassifierClient {
  const client = new ClassifierClient(classifierPolicy(overrides), url, trust);
  open.push(() => client.close());
  return client;
}

const TEXT = "a text that nobody else may see";
const GOOD = JSON.stringify(answerOf(scores(0.25)));
const failed = (failure: string): object => ({ kind: "unavailable", failure });

async function ask(
  reply: ClassifierReply,
  overrides: Partial<ClassifierPolicy> = {},
): Promise<ClassifierVerdict> {
  const server = await start(reply);
  return clientOf(server.url, overrides).classify(TEXT, LONG);
}

describe("a request", () => {
  test("of the guard service's protocol", async () => {
    const server = await start(scoresReply(scores(0.25)));
    const verdict = await clientOf(server.url).classify(`${TEXT} "é 😀"`, LONG);
    expect(verdict).toEqual({ kind: "scores", scores: scores(0.25) });
    expect(server.requests).toHaveLength(1);
    const [request] = server.requests;
    expect(request).toMatchObject({
      method: "POST",
      url: "/classify",
      headers: { "content-type": "application/json", accept: "application/json" },
    });
    expect(JSON.parse(request?.body ?? "")).toEqual({ text: `${TEXT} "é 😀"` });
    expect(request?.headers["content-length"]).toBe(String(Buffer.byteLength(request?.body ?? "")));
    expect(request?.headers).not.toHaveProperty("authorization");
  });

  test("of an OpenAI-compatible server of Llama Guard", async () => {
    const answer = {
      choices: [{ message: { role: "assistant", content: "unsafe\nS14" }, finish_reason: "stop" }],
    };
    const server = await start(bodyReply(JSON.stringify(answer)));
    const policy = { protocol: "chat", type: "llamaGuard", model: "llama-guard-3" } as const;
    expect(await clientOf(server.url, policy).classify(TEXT, LONG)).toEqual({
      kind: "scores",
      scores: { benign: 0, injection: 0, jailbreak: 1 },
    });
    expect(JSON.parse(server.requests[0]?.body ?? "")).toMatchObject({
      model: "llama-guard-3",
      messages: [{ role: "user", content: TEXT }],
      stream: false,
    });
  });

  test("has the header with the secret, which is never shown", async () => {
    const header = { name: "x-key", value: new Secret("Bearer of-the-secret") };
    const server = await start();
    const client = clientOf(server.url, { header });
    await client.classify(TEXT, LONG);
    expect(server.requests[0]?.headers["x-key"]).toBe("Bearer of-the-secret");
    expect(inspect(client, { depth: 9, showHidden: true })).not.toContain("of-the-secret");
  });

  test("with half of a surrogate pair is valid JSON for strict parsers", async () => {
    const server = await start();
    await clientOf(server.url).classify(`${TEXT}\ud83d`, LONG);
    await clientOf(server.url, { protocol: "chat" }).classify(`\ude00${TEXT}`, LONG);
    for (const { body } of server.requests) {
      expect(body).toContain("\ufffd");
      expect(body).not.toMatch(/\\u(?:d8|de)/i);
    }
  });
});

const GOOD_CHAT = JSON.stringify({
  choices: [{ message: { role: "assistant", content: "safe" } }],
});

const ANSWERS: readonly (readonly [string, ClassifierReply, string])[] = [
  ["500", bodyReply(GOOD, { status: 500 }), "refused"],
  ["401", bodyReply("no", { status: 401 }), "refused"],
  ["204", bodyReply("", { status: 204 }), "refused"],
  ["201, with a verdict", bodyReply(GOOD, { status: 201 }), "refused"],
  [
    "a redirect",
    bodyReply("", { status: 307, headers: { location: "http://127.0.0.1:1/x" } }),
    "refused",
  ],
  ["HTML", bodyReply("<html>welcome</html>"), "invalid_answer"],
  ["nothing", bodyReply(""), "invalid_answer"],
  ["another schema", bodyReply('{"safe":true}'), "invalid_answer"],
  ["a score of NaN", bodyReply(GOOD.replaceAll("0.25", "NaN")), "invalid_answer"],
  ["a score of Infinity", bodyReply(GOOD.replaceAll("0.25", "1e999")), "invalid_answer"],
  ["a negative score", bodyReply(GOOD.replaceAll("0.25", "-1")), "invalid_answer"],
  ["scores as texts", bodyReply(GOOD.replaceAll("0.25", '"0.25"')), "invalid_answer"],
  [
    "gzip that nobody asked for",
    bodyReply(gzipSync(GOOD), { headers: { "content-encoding": "gzip" } }),
    "invalid_answer",
  ],
  ["a huge answer", bodyReply(GOOD.padEnd(1_000_000)), "invalid_answer"],
  [
    "a huge answer without an end",
    (_, response) => {
      response.writeHead(200);
      response.write(GOOD.padEnd(100_000));
    },
    "invalid_answer",
  ],
  [
    "another type of classifier",
    scoresReply(scores(0), { "x-svc-classifier": "promptGuard" }),
    "wrong_classifier",
  ],
  [
    "a reset before the answer",
    (_, response) => void response.socket?.resetAndDestroy(),
    "unreachable",
  ],
  [
    "a reset within the headers",
    (_, response) => void response.socket?.end("HTTP/1.1 200 OK\r\nconte"),
    "unreachable",
  ],
  [
    "a reset within the answer",
    (_, response) => {
      response.writeHead(200, { "content-length": GOOD.length });
      response.write(GOOD.slice(0, 10), () => response.socket?.resetAndDestroy());
    },
    "unreachable",
  ],
  [
    "an end within the answer",
    (_, response) => {
      response.writeHead(200, { "transfer-encoding": "chunked" });
      response.write(GOOD, () => response.socket?.end());
    },
    "unreachable",
  ],
  ["what is no HTTP", (_, response) => void response.socket?.end("hello\r\n\r\n"), "unreachable"],
  [
    "a switch to another protocol",
    (_, response) =>
      void response.socket?.end(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
      ),
    "unreachable",
  ],
];

describe("no verdict", () => {
  test.each(ANSWERS)("%s", async (_, reply, failure) => {
    expect(await ask(reply)).toEqual(failed(failure));
  });

  test.each([
    ["an answer of the other protocol", bodyReply(GOOD)],
    ["a refusal in prose", bodyReply(GOOD_CHAT.replace("safe", "I cannot say whether it is safe"))],
  ])("of a chat: %s", async (_, reply) => {
    expect(await ask(reply, { protocol: "chat" })).toEqual(failed("invalid_answer"));
  });

  test("nobody listens", async () => {
    const server = await start();
    const { url } = server;
    await server.close();
    open.length = 0;
    expect(await clientOf(url).classify(TEXT, LONG)).toEqual(failed("unreachable"));
    expect(await clientOf("http://name.invalid/x").classify(TEXT, LONG)).toEqual(
      failed("unreachable"),
    );
  });

  test.each(["a\nsecret", "a secret\n", "\u0000", "schl\u00fcssel \u20ac"])(
    "the header cannot be sent: %j",
    async (value) => {
      const server = await start();
      const client = clientOf(server.url, { header: { name: "x-key", value: new Secret(value) } });
      expect(await client.classify(TEXT, LONG)).toEqual(failed("misconfigured"));
      expect(server.requests).toHaveLength(0);
    },
  );

  test("the same type, and a server that does not say its type, are accepted", async () => {
    const good = { kind: "scores", scores: scores(0) };
    expect(await ask(scoresReply(scores(0), { "x-svc-classifier": "stub" }))).toEqual(good);
    expect(await ask(scoresReply(scores(0)))).toEqual(good);
    expect(
      await ask(bodyReply(GOOD_CHAT, { headers: { "x-svc-classifier": "x" } }), {
        protocol: "chat",
      }),
    ).toEqual(good);
  });
});

describe("a server that hangs", () => {
  const HANGS: readonly (readonly [string, ClassifierReply])[] = [
    ["before its answer", () => {}],
    ["after its headers", (_, response) => response.writeHead(200).flushHeaders()],
    [
      "within its answer",
      (_, response) => {
        response.writeHead(200);
        response.write(GOOD.slice(0, 10));
      },
    ],
    [
      "byte by byte",
      (_, response) => {
        response.writeHead(200);
        const timer = setInterval(() => response.write(" "), 5);
        response.on("close", () => clearInterval(timer));
      },
    ],
  ];

  test.each(HANGS)("%s: its connection is closed when the time is over", async (_, reply) => {
    const server = await start(reply);
    expect(await clientOf(server.url).classify(TEXT, 80)).toEqual(failed("timeout"));
    const [socket] = server.sockets;
    if (socket !== undefined && !socket.destroyed) await once(socket, "close");
    expect(server.open).toBe(0);
  });

  test("while connections wait for others", async () => {
    const server = await start(() => {});
    const client = clientOf(server.url);
    const verdicts = await Promise.all(Array.from({ length: 20 }, () => client.classify(TEXT, 80)));
    expect(verdicts).toEqual(Array.from({ length: 20 }, () => failed("timeout")));
  });

  test("while TLS begins", async () => {
    const silent: Server = createServer();
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    open.push(() => silent.close());
    const { port } = silent.address() as { port: number };
    const client = clientOf(`https://127.0.0.1:${port}/`, {}, () => createSecureContext());
    expect(await client.classify(TEXT, 80)).toEqual(failed("timeout"));
  });
});

describe("connections", () => {
  test("one after the other uses one", async () => {
    const server = await start();
    const client = clientOf(server.url);
    for (let count = 0; count < 5; count += 1) await client.classify(TEXT, LONG);
    expect(server.requests.map(({ connection }) => connection)).toEqual([1, 1, 1, 1, 1]);
  });

  test("at most 16 at a time", async () => {
    const waiting: (() => void)[] = [];
    const server = await start((request, response) => {
      waiting.push(() => void bodyReply(GOOD)(request, response));
    });
    const client = clientOf(server.url);
    const verdicts = Promise.all(Array.from({ length: 40 }, () => client.classify(TEXT, LONG)));
    await until(() => waiting.length === 16);
    expect(server.sockets).toHaveLength(16);
    for (let answered = 0; answered < 40; answered += 1) {
      await until(() => waiting.length > 0);
      waiting.shift()?.();
    }
    expect(await verdicts).toHaveLength(40);
    expect(server.sockets).toHaveLength(16);
  });

  test("one that the server closed meanwhile is replaced: a restart is no failure", async () => {
    const server = await start();
    const client = clientOf(server.url);
    await client.classify(TEXT, LONG);
    // The first request on each connection is answered, the others are reset.
    server.reply = (request, response) => {
      const before = server.requests.filter(({ connection }) => connection === request.connection);
      if (before.length > 1) response.socket?.resetAndDestroy();
      else void bodyReply(GOOD)(request, response);
    };
    expect(await client.classify(TEXT, LONG)).toEqual({ kind: "scores", scores: scores(0.25) });
    expect(server.sockets).toHaveLength(2);
    // A new connection that is reset is a failure.
    server.reply = (_, response) => void response.socket?.resetAndDestroy();
    expect(await client.classify(TEXT, LONG)).toEqual(failed("unreachable"));
  });

  test("are closed with the client, and its requests fail", async () => {
    const server = await start(() => {});
    const client = clientOf(server.url);
    const verdict = client.classify(TEXT, LONG);
    await until(() => server.requests.length > 0);
    client.close();
    expect(await verdict).toEqual(failed("unreachable"));
  });

  test("use no proxy of the environment", async () => {
    const proxy = await start();
    const saved = { ...process.env };
    Object.assign(process.env, {
      HTTP_PROXY: proxy.url,
      http_proxy: proxy.url,
      NODE_USE_ENV_PROXY: "1",
    });
    try {
      const server = await start();
      await clientOf(server.url).classify(TEXT, LONG);
      expect(server.requests).toHaveLength(1);
      expect(proxy.requests).toHaveLength(0);
    } finally {
      process.env = saved;
    }
  });
});

describe("TLS", () => {
  test("a classifier whose certificate is trusted", async () => {
    const server = await TestClassifier.startSecure();
    open.push(() => server.close());
    const trust = (): SecureContext => createSecureContext({ ca: server.authorityPem });
    const client = clientOf(server.url, {}, trust);
    const good = { kind: "scores", scores: scores(0) };
    expect(await client.classify(TEXT, LONG)).toEqual(good);
    expect(await client.classify(TEXT, LONG)).toEqual(good);
    expect(server.requests.map(({ connection }) => connection)).toEqual([1, 1]);
  });

  test("one that is not trusted, or is for another name, sees no text", async () => {
    const server = await TestClassifier.startSecure("other.test");
    open.push(() => server.close());
    const trusted = (): SecureContext => createSecureContext({ ca: server.authorityPem });
    for (const trust of [trusted, () => createSecureContext()]) {
      const verdict = await clientOf(server.url, {}, trust).classify(TEXT, LONG);
      expect(verdict).toEqual(failed("unreachable"));
    }
    expect(server.requests).toHaveLength(0);
  });

  test("plain HTTP is not taken for TLS, nor the reverse", async () => {
    const server = await start();
    const secure = clientOf(server.url.replace("http:", "https:"), {}, () => createSecureContext());
    expect(await secure.classify(TEXT, LONG)).toEqual(failed("unreachable"));
    const tls = await TestClassifier.startSecure();
    open.push(() => tls.close());
    const plain = clientOf(tls.url.replace("https:", "http:"));
    expect(await plain.classify(TEXT, LONG)).toEqual(failed("unreachable"));
  });
});
