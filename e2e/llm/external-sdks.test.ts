/**
 * After `eval "$(svc gateway env)"`, programs that read these variables use the external gateway
 * unmodified.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ROOT } from "../support/build.ts";
import { accessKeyYaml, providerYaml, rawKey } from "../support/resources.ts";
import { Stack, svc } from "../support/stack.ts";
import { type DialectName, Vendor } from "../support/vendors.ts";

let stack: Stack;
let config: string;
const vendors: Partial<Record<DialectName, Vendor>> = {};

beforeAll(async () => {
  config = mkdtempSync(path.join(os.tmpdir(), "svc-e2e-config-"));
  const files: Record<string, string> = {};
  for (const name of ["openai", "anthropic"] as const) {
    const vendor = await Vendor.start(name);
    vendors[name] = vendor;
    files[`${name}.yaml`] = providerYaml(name, vendor, {
      spec: { allowedModels: ["some-model"], externalAccess: { enabled: true } },
    });
    files[`${name}-key.yaml`] = accessKeyYaml(`to-${name}`, name);
  }
  stack = await Stack.start({ files });
});

afterAll(async () => {
  await stack?.stop();
  for (const vendor of Object.values(vendors)) await vendor.close();
  rmSync(config, { recursive: true, force: true });
});

/** In a separate shell whose environment initially names no gateway and no key. */
async function inShell(command: string): Promise<string> {
  const env = { PATH: process.env["PATH"] ?? "", HOME: config, XDG_CONFIG_HOME: config };
  return (
    await promisify(execFile)(
      "bash",
      [
        "-c",
        `set -e; eval "$('${process.execPath}' '${ROOT}/dist/svc.js' gateway env)"; ${command}`,
      ],
      { env, cwd: ROOT },
    )
  ).stdout;
}

test.each(["openai", "anthropic"] as const)("the official clients, to %s", async (name) => {
  const vendor = vendors[name] as Vendor;
  vendor.reset();
  vendor.always((request, response) =>
    request.path.endsWith("/count_tokens")
      ? vendor.replies(200, { input_tokens: 11 })(request, response)
      : vendor.says({ text: ["Hello ", "there"] })(request, response),
  );
  const login = await svc(["login", stack.externalUrl, "--access-key", rawKey(`to-${name}`)], {
    XDG_CONFIG_HOME: config,
  });
  expect(login).toMatchObject({ code: 0 });
  const said = JSON.parse(
    await inShell(`'${process.execPath}' e2e/support/env-clients.ts some-model`),
  ) as object;
  const text = "Hello there";
  expect(said).toEqual({
    chat: text,
    chatStream: text,
    message: text,
    messageStream: text,
    counted: name === "anthropic" ? 11 : 501,
    listed: [`${name}/some-model`],
  });
  expect(vendor.requests).toHaveLength(name === "anthropic" ? 5 : 4);
  for (const request of vendor.requests) {
    expect(JSON.stringify([request.rawHeaders, request.path, request.body])).not.toContain(
      rawKey(`to-${name}`).slice(4),
    );
    expect(JSON.stringify(request.rawHeaders)).toContain(vendor.key);
  }
});

test("a plain program that only reads the variables", async () => {
  (vendors.openai as Vendor).always((vendors.openai as Vendor).says({ text: ["ok"] }));
  await svc(["login", stack.externalUrl, "--access-key", rawKey("to-openai")], {
    XDG_CONFIG_HOME: config,
  });
  const body = JSON.stringify({ model: "some-model", messages: [{ role: "user", content: "Hi" }] });
  const answer = await inShell(
    `curl -sS "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer ` +
      `$OPENAI_API_KEY" -H 'Content-Type: application/json' -d '${body}'`,
  );
  expect(JSON.parse(answer)).toMatchObject({ object: "chat.completion" });
  // Clients that check a key's form accept the wrapped one.
  expect(
    await inShell(
      '[[ "$ANTHROPIC_API_KEY" =~ ^sk-ant-api03-[A-Za-z0-9_-]+AA$ ]] && echo of the form',
    ),
  ).toBe("of the form\n");
});
