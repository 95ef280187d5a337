import type http from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import { ClassifierError } from "./classifier.ts";
import { endpointUrl } from "./endpoint.ts";
import { customClassifier, llamaGuardClassifier } from "./remote.ts";
import { BENIGN, type FakeEndpoint, llamaGuardCompletion, startEndpoint } from "./testing.ts";
import { eventually } from "../../../e2e/support/wait.ts";

const never = new AbortController().signal;
let endpoint: FakeEndpoint;

afterEach(() => endpoint?.close());

const answering =
  (...bodies: readonly string[]) =>
  (_request: unknown, response: http.ServerResponse): void => {
    const body = bodies[Math.min(endpoint.requests.length, bodies.length) - 1];
    response.setHeader("content-type", "application/json").end(body);
  };

const target = (operation: string, timeoutMs = 5_000) => ({
  url: endpointUrl(endpoint.url, operation),
  auth: { header: "x-api-key", value: "secret-1" },
  timeoutMs,
});

const custom = (timeoutMs?: number) => customClassifier(target("/classify", timeoutMs), "far");

const llama = (pieceChars = 1_000) =>
  llamaGuardClassifier({
    endpoint: target("/chat/completions"),
    model: "llama-guard3",
    categories: new Map([["S14", "injection"]]),
    pieceChars,
  });

describe("the URL of an operation", () => {
  test.each([
    ["http://a", "http://a/classify"],
    ["http://a/", "http://a/classify"],
    ["https://a:1/b/", "https://a:1/b/classify"],
    ["http://a/classify", "http://a/classify"],
    ["http://a/classify/", "http://a/classify"],
    ["http://a/b?c=d", "http://a/b/classify?c=d"],
  ])("%s", (text, url) => {
    expect(endpointUrl(text, "/classify").href).toBe(url);
  });

  test.each([
    "",
    "a.example:80",
    "http://a//",
    "ftp://a",
    "file:///etc/passwd",
    "http://",
    "/classify",
  ])("%j is refused", (text) => {
    expect(() => endpointUrl(text, "/classify")).toThrow("--endpoint");
  });

  test("credentials in it are refused, and not shown", () => {
    for (const text of ["http://user:hidden@a/", "user:hidden@a"]) {
      let message = "";
      try {
        endpointUrl(text, "/classify");
      } catch (error) {
        message = (error as Error).message;
      }
      expect(message).toContain("--endpoint");
      expect(message).not.toContain("hidden");
    }
  });
});

describe("a custom endpoint", () => {
  test("gets the text and the secret, and its scores are returned", async () => {
    const labels = { benign: 0.2, injection: 0.7, jailbreak: 0.1 };
    endpoint = await startEndpoint(
      answering(JSON.stringify({ label: "injection", score: 0.7, labels })),
    );
    const classifier = custom();
    expect(await classifier.classify("a text", never)).toEqual(labels);
    expect([classifier.type, classifier.model]).toEqual(["custom", "far"]);
    expect(endpoint.requests).toMatchObject([
      { path: "/classify", body: { text: "a text" }, headers: { "x-api-key": "secret-1" } },
    ]);
  });

  test.each([
    ["HTML", "<html>"],
    ["another shape", '{"label":"benign","score":1}'],
    [
      "a score above 1",
      '{"label":"x","score":1,"labels":{"benign":2,"injection":0,"jailbreak":0}}',
    ],
    ["nothing", ""],
    ["too much", `"${"a".repeat(300_000)}"`],
  ])("that answers %s does not classify", async (_name, body) => {
    endpoint = await startEndpoint(answering(body));
    await expect(custom().classify("x", never)).rejects.toMatchObject({
      name: "ClassifierError",
      status: 502,
    });
  });

  test.each([500, 401, 204])(
    "that answers with the status %d does not classify",
    async (status) => {
      endpoint = await startEndpoint((_request, response) => response.writeHead(status).end());
      await expect(custom().classify("x", never)).rejects.toThrow(
        new ClassifierError(502, `the endpoint answered with status ${status}`),
      );
    },
  );

  test("a redirect is not followed: it could take the secret elsewhere", async () => {
    endpoint = await startEndpoint((request, response) =>
      request.path === "/classify"
        ? response.writeHead(307, { location: "/elsewhere" }).end()
        : response.end(JSON.stringify({ label: "benign", score: 1, labels: BENIGN })),
    );
    await expect(custom().classify("x", never)).rejects.toThrow("status 307");
    expect(endpoint.requests).toHaveLength(1);
  });

  test("that does not answer in time, also within a body", async () => {
    endpoint = await startEndpoint((_request, response) => void response.writeHead(200).write("{"));
    await expect(custom(50).classify("x", never)).rejects.toMatchObject({
      status: 504,
      message: "the endpoint did not answer within 50 ms",
    });
  });

  test("that is away: its error has neither the text nor the secret", async () => {
    endpoint = await startEndpoint(() => undefined);
    const classifier = custom();
    await endpoint.close();
    await expect(classifier.classify("the text", never)).rejects.toMatchObject({
      status: 502,
      message: "the endpoint cannot be reached: ECONNREFUSED",
    });
  });

  test("a request that is aborted ends there, too", async () => {
    const { promise: left, resolve } = Promise.withResolvers<void>();
    endpoint = await startEndpoint((_request, response) => response.once("close", resolve));
    const aborter = new AbortController();
    const result = custom().classify("x", aborter.signal);
    const rejected = expect(result).rejects.toThrow("gone");
    await eventually(() => expect(endpoint.requests).toHaveLength(1));
    aborter.abort(new Error("gone"));
    await rejected;
    await left;
  });
});

describe("Llama Guard", () => {
  test("is asked for a chat completion, and its categories become labels", async () => {
    endpoint = await startEndpoint(
      answering(llamaGuardCompletion("\n\nunsafe\nS14"), llamaGuardCompletion("unsafe\nS1")),
    );
    const scores = await llama().classify("a text", never);
    expect(scores).toEqual({ benign: 0, injection: 1, jailbreak: 0 });
    expect(await llama().classify("a text", never)).toMatchObject({ jailbreak: 1 });
    expect(endpoint.requests[0]).toMatchObject({
      path: "/chat/completions",
      headers: { "x-api-key": "secret-1" },
      body: { model: "llama-guard3", messages: [{ role: "user", content: "a text" }] },
    });
  });

  test("a long text is asked about in pieces, and the first unsafe one decides", async () => {
    endpoint = await startEndpoint(({ body }, response) =>
      response.end(
        llamaGuardCompletion(JSON.stringify(body).includes("ATTACK") ? "unsafe\nS2" : "safe"),
      ),
    );
    const padding = "word ".repeat(1_000);
    expect(await llama().classify(padding, never)).toEqual(BENIGN);
    const calm = endpoint.requests.length;
    expect(calm).toBeGreaterThan(4);
    expect(await llama().classify(`${padding}ATTACK${padding}`, never)).toMatchObject({
      benign: 0,
      jailbreak: 1,
    });
    expect(endpoint.requests.length).toBeLessThan(calm * 3);
  });

  test("an answer that is none of its own does not classify", async () => {
    endpoint = await startEndpoint(answering(llamaGuardCompletion("I think it is safe.")));
    await expect(llama().classify("x", never)).rejects.toMatchObject({ status: 502 });
  });

  test("an empty text is benign", async () => {
    endpoint = await startEndpoint(() => undefined);
    expect(await llama().classify("", never)).toEqual(BENIGN);
  });
});
