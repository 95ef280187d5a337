/**
 * Kinds of providers that speak a vendor's dialect at another address, and how models are named.
 */
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { call, textOf } from "../support/client.ts";
import { useFixture } from "../support/fixture.ts";
import { wire } from "../support/mediated.ts";
import { agentYaml, providerYaml } from "../support/resources.ts";
import { Stack } from "../support/stack.ts";

const keyless = (name: string, baseURL: string, spec: object = {}): string =>
  JSON.stringify({
    apiVersion: "svc.io/v1",
    kind: "ModelProvider",
    metadata: { name },
    spec: { provider: "openai-compatible", baseURL, ...spec },
  });

const fixture = useFixture({
  models: [
    "openai/*",
    "azure/*",
    "azure-dated/*",
    "local/*",
    "narrow/*",
    "anthropic/claude-sonnet-4-5",
  ],
  files: ({ openai }) => ({
    "azure.yaml": providerYaml("azure", openai, {
      kind: "azure-openai",
      baseURL: `http://${openai.host}/openai/v1`,
    }),
    "azure-dated.yaml": providerYaml("azure-dated", openai, {
      kind: "azure-openai",
      baseURL: `http://${openai.host}/openai`,
      spec: { apiVersion: "2024-10-21" },
    }),
    "local.yaml": keyless("local", `http://${openai.host}`),
    "narrow.yaml": keyless("narrow", openai.baseURL, {
      allowedModels: ["small-*"],
      deniedModels: ["small-secret*"],
    }),
  }),
});

test.each([
  ["azure", "/openai/v1/chat/completions"],
  ["azure-dated", "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21"],
])("%s has the key in Azure's header, and Azure's path", async (name, path) => {
  const { openai } = fixture.vendors;
  openai.next(openai.says({ text: ["Hello"] }));
  const answer = await call(fixture, { dialect: "anthropic", model: `${name}/gpt-4o` });
  expect(answer.status).toBe(200);
  expect(textOf("anthropic", answer.text)).toBe("Hello");
  expect(openai.only.path).toBe(path);
  expect(openai.only.headers["api-key"]).toBe(openai.key);
  expect(openai.only.headers.authorization).toBeUndefined();
  expect(openai.only.headers["x-api-key"]).toBeUndefined();
  expect(wire(openai.only)).not.toContain(fixture.token);
});

test("a provider without a key gets none, and a base URL without a path is one", async () => {
  const { openai } = fixture.vendors;
  openai.next(openai.says({ text: ["Hello"] }));
  const model = "local/org/model:7b";
  const answer = await call(fixture, {
    dialect: "openai",
    model,
    headers: { "x-api-key": fixture.token },
  });
  expect(answer.status).toBe(200);
  expect(openai.only.path).toBe("/chat/completions");
  expect(openai.only.json["model"]).toBe("org/model:7b");
  for (const name of ["authorization", "x-api-key", "api-key", "x-goog-api-key"])
    expect(openai.only.headers[name]).toBeUndefined();
  expect(wire(openai.only)).not.toContain(fixture.token);
  // Its price is unknown: no cost, and no failure.
  expect(answer.headers["x-svc-cost-usd"]).toBeUndefined();
  expect(answer.headers["x-svc-model-id"]).toBe(model);
});

test.each([
  ["narrow/small-1", 200],
  ["narrow/small-secret-1", 403],
  ["narrow/large-1", 403],
  ["anthropic/claude-opus-4-1", 403],
  ["gemini/gemini-2.5-flash", 403],
])("%s is %i for this agent", async (model, status) => {
  const { openai } = fixture.vendors;
  openai.always(openai.says({ text: ["Hello"] }));
  const answer = await call(fixture, { dialect: "openai", model });
  // A provider without models for the agent is treated as unknown.
  expect(status === 403 ? [403, 404] : [status]).toContain(answer.status);
  expect(openai.requests).toHaveLength(status === 200 ? 1 : 0);
});

test("a bare name finds the one provider that has it", async () => {
  const { anthropic } = fixture.vendors;
  anthropic.next(anthropic.says({ text: ["Hello"] }));
  const stack = await Stack.start({
    files: {
      "a.yaml": providerYaml("a", anthropic),
      "b.yaml": providerYaml("b", anthropic),
      "agent.yaml": agentYaml("agent", ["a/claude-sonnet-4-5", "a/claude-both", "b/claude-both"]),
    },
  });
  try {
    const own = { stack, token: await stack.token("agent") };
    expect(
      (await call(own, { dialect: "anthropic", model: "claude-sonnet-4-5" })).headers[
        "x-svc-model-id"
      ],
    ).toBe("a/claude-sonnet-4-5");
    const both = await call(own, { dialect: "anthropic", model: "claude-both" });
    expect(both.status).toBe(400);
    expect(both.message).toContain("a/claude-both");
    expect(both.message).toContain("b/claude-both");
    expect(anthropic.requests).toHaveLength(1);
  } finally {
    await stack.stop();
  }
});

test("the kind mock answers on a machine with nothing, in every dialect", async () => {
  const stack = await Stack.start({
    files: {
      "all.yaml":
        JSON.stringify({
          apiVersion: "svc.io/v1",
          kind: "ModelProvider",
          metadata: { name: "mock" },
          spec: { provider: "mock" },
        }) + `\n---\n${agentYaml("agent", ["mock/*"])}`,
    },
  });
  try {
    const own = { stack, token: await stack.token("agent") };
    for (const dialect of ["openai", "anthropic", "gemini"] as const) {
      for (const stream of [false, true]) {
        const answer = await call(own, { dialect, model: "mock/echo", text: "Well met", stream });
        expect(answer.status).toBe(200);
        expect(textOf(dialect, answer.text)).toContain("Well met");
      }
    }
    // The printed line works as it is, and contains no token, because the output is not a terminal.
    expect(stack.logs).not.toContain(own.token);
    expect(stack.logs).not.toContain("svcw_");
    const [line = ""] = /^ {2}curl .*$/m.exec(stack.logs) ?? [];
    const answer = execFileSync("sh", ["-c", line], { encoding: "utf8" });
    expect(JSON.parse(answer)).toMatchObject({
      choices: [{ message: { content: "You said: Hello" } }],
    });
  } finally {
    await stack.stop();
  }
});

test("a vendor that echoes its key in headers does not hand it to the caller, whichever attempt it was", async () => {
  const { openai, anthropic } = fixture.vendors;
  const echo = (key: string): Record<string, string> => ({
    "x-echo": `Bearer ${key}`,
    "x-echo-part": `you sent ${key}, did you not`,
    "www-authenticate": `Bearer realm="${key}"`,
    "x-kept": "kept",
  });
  const ways = [
    () => openai.next(openai.says({ text: ["hi"], headers: echo(openai.key) })),
    () => openai.next(openai.fails({ status: 400, message: "no", headers: echo(openai.key) })),
    // The second attempt, through the internal listener.
    () =>
      openai.next(
        openai.fails({ status: 503, message: "busy", headers: { "retry-after-ms": "1" } }),
        openai.says({ text: ["hi"], headers: echo(openai.key) }),
      ),
  ];
  for (const [index, way] of ways.entries()) {
    for (const stream of [false, true]) {
      way();
      const answer = await call(fixture, { dialect: "openai", model: "openai/gpt-4o", stream });
      expect(JSON.stringify(answer.headers), `${index}`).not.toContain(openai.key);
      expect(answer.text).not.toContain(openai.key);
      expect(answer.headers["x-kept"], `${index}`).toBe("kept");
    }
  }
  anthropic.next(anthropic.says({ text: ["hi"], headers: echo(anthropic.key) }));
  const answer = await call(fixture, {
    dialect: "anthropic",
    model: "anthropic/claude-sonnet-4-5",
  });
  expect(answer.status).toBe(200);
  expect(JSON.stringify(answer.headers)).not.toContain(anthropic.key);
  expect(answer.headers["x-kept"]).toBe("kept");
});

test("a caller's account at a vendor stays here, and so does the vendor's word on ours", async () => {
  const { openai } = fixture.vendors;
  const vendorsOwn = {
    "set-cookie": "session=1",
    "openai-organization": "our-org",
    "alt-svc": 'h3=":443"',
  };
  openai.next(
    openai.fails({ status: 503, message: "busy", headers: { "retry-after-ms": "1" } }),
    openai.fails({ status: 400, message: "no", headers: vendorsOwn }),
  );
  const callersOwn = {
    "openai-organization": "their-org",
    "openai-project": "p",
    "x-goog-user-project": "p",
    cookie: "a=b",
  };
  const answer = await call(fixture, {
    dialect: "openai",
    model: "openai/gpt-4o",
    headers: callersOwn,
  });
  expect(answer.status).toBe(400);
  for (const name of Object.keys(vendorsOwn)) expect(answer.headers[name], name).toBeUndefined();
  expect(openai.requests).toHaveLength(2);
  for (const request of openai.requests) {
    for (const name of Object.keys(callersOwn)) expect(request.headers[name], name).toBeUndefined();
  }
});
