/**
 * The OpenAI Agents SDK, unmodified, which speaks the Responses API only: a loop of tools at each
 * kind of provider.
 */
import {
  Agent,
  applyPatchTool,
  OpenAIProvider,
  Runner,
  setTracingDisabled,
  shellTool,
  tool,
} from "@openai/agents";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { useFixture } from "../support/fixture.ts";
import { chatPath, expectMediated } from "../support/mediated.ts";
import { providerYaml } from "../support/resources.ts";
import { MODELS, TWO_CALLS } from "../support/samples.ts";
import type { Vendor } from "../support/vendors.ts";

setTracingDisabled(true);

const fixture = useFixture({
  models: ["anthropic/*", "gemini/*", "local/*"],
  files: ({ openai }) => ({
    "local.yaml": providerYaml("local", openai, { kind: "openai-compatible" }),
  }),
});

const asked: string[] = [];

const weather = tool({
  name: "weather",
  description: "The weather of a city.",
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => {
    asked.push(city);
    return `sunny in ${city}`;
  },
});

function runner(): Runner {
  const baseURL = `${fixture.stack.baseUrl}/v1`;
  const modelProvider = new OpenAIProvider({
    apiKey: fixture.token,
    baseURL,
    useResponses: true,
  });
  return new Runner({ modelProvider });
}

describe.each([
  ["anthropic", "anthropic"],
  ["gemini", "gemini"],
  ["local", "openai"],
] as const)("at %s", (provider, dialect) => {
  const vendor = (): Vendor => fixture.vendors[dialect];
  const agent = new Agent({
    name: "forecaster",
    instructions: "Answer with the weather.",
    model: `${provider}/${MODELS[dialect]}`,
    tools: [weather],
  });

  test.each([false, true])("a loop of tool calls, streamed: %s", async (stream) => {
    asked.length = 0;
    vendor().next(
      vendor().says({ text: ["Let me see."], toolCalls: TWO_CALLS }),
      vendor().says({
        toolCalls: [{ id: "call_rome33", name: "weather", args: { city: "Rome" } }],
      }),
      vendor().says({ text: ["Sunny ", "everywhere."] }),
    );
    const result = stream
      ? await runner().run(agent, "The weather?", { stream: true })
      : await runner().run(agent, "The weather?");
    if ("completed" in result) await result.completed;
    expect(result.finalOutput).toBe("Sunny everywhere.");
    expect(asked).toEqual(["Paris", "Oslo", "Rome"]);
    expect(vendor().requests).toHaveLength(3);
    for (const request of vendor().requests) {
      expectMediated(fixture, vendor(), request);
      expect(request.path).toBe(chatPath(vendor(), MODELS[dialect], stream));
    }
    const last = await vendor().request(2);
    for (const text of ["sunny in Paris", "sunny in Oslo", "Let me see."])
      expect(last.body).toContain(text);
  });

  test("an answer of a type", async () => {
    vendor().next(vendor().says({ text: ['{"city":"Oslo"}'] }));
    const typed = new Agent({
      name: "locator",
      model: `${provider}/${MODELS[dialect]}`,
      outputType: z.object({ city: z.string() }),
    });
    const result = await runner().run(typed, "Where?");
    expect(result.finalOutput).toEqual({ city: "Oslo" });
  });

  test("OpenAI's own shell and patches, which the client runs", async () => {
    const ran: string[] = [];
    const patched: string[] = [];
    const shell = shellTool({
      shell: {
        run: async ({ commands }) => {
          ran.push(...commands);
          return {
            output: [{ stdout: "a.txt", stderr: "", outcome: { type: "exit", exitCode: 0 } }],
          };
        },
      },
    });
    const edit = async ({ path }: { readonly path: string }) => {
      patched.push(path);
      return { output: `edited ${path}` };
    };
    const editor = { createFile: edit, updateFile: edit, deleteFile: edit };
    vendor().next(
      vendor().says({
        toolCalls: [{ id: "call_shell1", name: "shell", args: { commands: ["ls"] } }],
      }),
      vendor().says({
        toolCalls: [
          {
            id: "call_patch1",
            name: "apply_patch",
            args: { type: "create_file", path: "b.txt", diff: "+hi" },
          },
        ],
      }),
      vendor().says({ text: ["Done."] }),
    );
    const coder = new Agent({
      name: "coder",
      model: `${provider}/${MODELS[dialect]}`,
      tools: [shell, applyPatchTool({ editor })],
    });
    const result = await runner().run(coder, "List, then write b.txt");
    expect(result.finalOutput).toBe("Done.");
    expect(ran).toEqual(["ls"]);
    expect(patched).toEqual(["b.txt"]);
    const { body } = await vendor().request(2);
    expect(body).toContain("a.txt");
    expect(body).toContain("edited b.txt");
  });
});
