/**
 * Properties of every plugin. A plugin is tested because its folder exists: its
 * `contract-sample.ts` contains a Secret and requests, and lists the checks that do not apply to
 * it, with the reason.
 */
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { scopeSchema } from "../resources/provider.ts";
import {
  type ActionResolution,
  ConfigError,
  InjectionError,
  type Injection,
  type ProviderInstance,
  type ProviderPlugin,
  type ServiceRequest,
} from "./contract.ts";
import { type ContractSample, context, FakeServer, request } from "./testing.ts";

const folders = readdirSync(import.meta.dirname, { withFileTypes: true })
  .filter(
    (entry) =>
      entry.isDirectory() && existsSync(path.join(import.meta.dirname, entry.name, "plugin.ts")),
  )
  .map(({ name }) => name);

/** Also of the example, which is not shipped. */
const plugins: ReadonlyMap<string, ProviderPlugin> = new Map(
  await Promise.all(
    folders.map(async (name): Promise<[string, ProviderPlugin]> => {
      const { plugin } = (await import(`./${name}/plugin.ts`)) as { plugin: ProviderPlugin };
      return [name, plugin];
    }),
  ),
);

test("every plugin has the name of its folder", () => {
  expect(folders.length).toBeGreaterThan(1);
  for (const [name, { providerName }] of plugins) expect(providerName).toBe(name);
});

const HOST = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$/;
const HEADER = /^[a-z0-9!#$%&'*+.^_`|~-]+$/;
const ACTION = /^[A-Za-z0-9._/-]+(?::[A-Za-z0-9._/-]+)?$/;

/** Returns a number determined by a seed, so that failures are reproducible. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const PIECES = [
  "/",
  "//",
  "..",
  "%2e%2e",
  "%2F",
  "%252f",
  ";x",
  "\\",
  "%00",
  "%c0%ae",
  "%",
  "%zz",
  "é",
  "\u0000",
  "a",
  "1",
  "repos",
  "v1",
  "{",
  "*",
  "?",
  "#",
  "=",
  "&",
  ":",
  "@",
  "%0d%0a",
  " ",
  "x".repeat(3_000),
];

/** Generates malicious requests that are similar to `base`. */
function* hostile(base: ServiceRequest, count: number): Generator<ServiceRequest> {
  const random = seeded(4_711);
  const any = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const mangle = (text: string): string => {
    const at = Math.floor(random() * (text.length + 1));
    return (
      text.slice(0, at) +
      any(PIECES) +
      text.slice(random() < 0.5 ? at : Math.min(text.length, at + 3))
    );
  };
  for (let n = 0; n < count; n++) {
    yield {
      method: any([base.method, "GET", "POST", "PUT", "DELETE", "get", "", "BREW", "\u0000"]),
      host:
        random() < 0.9
          ? base.host
          : any([
              "",
              "evil.example",
              `${base.host}.evil.example`,
              `${base.host}:443`,
              base.host.toUpperCase(),
            ]),
      path: `/${mangle(mangle(base.path)).replace(/^\//, "")}`,
      query: mangle(base.query),
      headers: new Map([
        ...base.headers,
        [
          any([
            "content-type",
            "content-encoding",
            "x-http-method-override",
            "host",
            "x-amz-target",
          ]),
          any(["", "gzip", "application/json", "DELETE", "\u0000"]),
        ],
      ]),
      body: any([
        undefined,
        Buffer.alloc(0),
        Buffer.from(mangle(base.body?.toString("latin1") ?? "{}"), "latin1"),
        Buffer.from("[".repeat(20_000)),
      ]),
    };
  }
}

const hasSample = (folder: string): boolean =>
  existsSync(path.join(import.meta.dirname, folder, "contract-sample.ts"));

test("every folder with a plugin says what a Secret and requests of it look like", () => {
  expect(folders.filter((folder) => !hasSample(folder))).toEqual([]);
});

for (const folder of folders.filter(hasSample)) {
  const { plugin } = (await import(`./${folder}/plugin.ts`)) as { readonly plugin: ProviderPlugin };
  const { sample } = (await import(`./${folder}/contract-sample.ts`)) as {
    readonly sample: ContractSample;
  };

  const made = (
    authType: string,
    respond = sample.respond ?? (() => new Response("no", { status: 500 })),
  ) => {
    const server = new FakeServer(respond);
    const auth = sample.auth[authType] ?? { secrets: {} };
    const world = context({
      binding: "bound-name",
      authType,
      secrets: auth.secrets,
      config: auth.config ?? {},
      fetch: server.fetch,
      ...auth.context,
    });
    return { world, server, instance: plugin.create(world) };
  };
  const authTypes = Object.keys(plugin.authTypes);
  const secretsOf = (authType: string): string[] =>
    [...Object.values(sample.auth[authType]?.secrets ?? {}), ...(sample.tokens ?? [])].filter(
      (value) => value.length >= 8,
    );
  /** Short values (a region, an id) are not secrets; long ones must not be visible. */
  const holdsSecret = (text: string, authType: string): boolean =>
    secretsOf(authType).some(
      (value) => text.includes(value) || text.includes(JSON.stringify(value).slice(1, -1)),
    );
  const first = sample.requests[0]?.request as ServiceRequest;

  describe(folder, () => {
    test("says what it is: name, hosts, headers and bodies are well-formed", () => {
      expect(plugin.providerName).toBe(folder);
      const patterns = plugin.hostPatterns.map((pattern) => {
        expect(pattern).toMatch(/^\*\./);
        return pattern.slice(2);
      });
      const hosts = [...plugin.defaultHosts, ...patterns];
      const isBySettings = sample.exceptions?.["hosts and scopes by settings"] !== undefined;
      if (!isBySettings) expect(hosts.length).toBeGreaterThan(0);
      for (const host of hosts) expect(host).toMatch(HOST);
      expect(new Set(hosts).size).toBe(hosts.length);
      expect(authTypes.length).toBeGreaterThan(0);
      expect(plugin.credentialHeaders).toContain("authorization");
      if (sample.exceptions?.["cookies stay"] === undefined)
        expect(plugin.credentialHeaders).toContain("cookie");
      for (const header of plugin.credentialHeaders) expect(header).toMatch(HEADER);
      for (const about of Object.values(plugin.configKeys))
        expect(about.length).toBeGreaterThan(10);
      if (!isBySettings) expect(Object.keys(plugin.scopeKeys).length).toBeGreaterThan(0);
      for (const [key, about] of Object.entries(plugin.scopeKeys)) {
        expect(Object.keys(scopeSchema.shape)).toContain(key);
        expect(about.length).toBeGreaterThan(10);
      }
      for (const body of plugin.bodies) {
        expect(body.maxBytes).toBeGreaterThan(0);
        expect(body.maxBytes).toBeLessThanOrEqual(32 * 1024 * 1024);
        for (const each of body.paths) expect(each).toMatch(/^[/*]/);
        for (const each of body.methods ?? []) expect(each).toMatch(/^[A-Z]+$/);
      }
    });

    test("has a sample of each kind of credential", () => {
      expect(Object.keys(sample.auth).sort()).toEqual(authTypes.toSorted());
      expect(sample.requests.length).toBeGreaterThan(1);
    });

    test.each(authTypes)(
      "%s: a Secret that lacks a key, or holds nothing in it, is an error that names it and shows nothing",
      (authType) => {
        const auth = sample.auth[authType] ?? { secrets: {} };
        for (const key of plugin.authTypes[authType]?.required ?? []) {
          for (const value of [undefined, "", " \n", "a\r\nx-injected: 1"]) {
            const secrets = Object.fromEntries(
              Object.entries({ ...auth.secrets, [key]: value }).filter(
                (entry): entry is [string, string] => entry[1] !== undefined,
              ),
            );
            const create = () =>
              plugin.create(
                context({
                  binding: "bound-name",
                  authType,
                  secrets,
                  config: auth.config ?? {},
                  ...auth.context,
                }),
              );
            expect(create, `${key}: ${JSON.stringify(value)}`).toThrow(ConfigError);
            expect(create).toThrow(key);
            expect(create).toThrow("bound-name");
            expect(create).not.toThrow("x-injected");
            try {
              create();
            } catch (error) {
              expect(holdsSecret(inspect(error, { depth: 9 }), authType)).toBe(false);
            }
          }
        }
      },
    );

    test.each(authTypes)(
      "%s: understands requests, each time alike, and changes nothing of them",
      (authType) => {
        const { instance } = made(authType);
        for (const { request: sent, actions } of sample.requests) {
          const before = inspect(sent, { depth: 9 });
          const resolution = instance.resolveAction(sent);
          expect(
            resolution.kind === "resolved" && resolution.actions.map(({ action }) => action),
          ).toEqual(actions);
          expect(instance.resolveAction(sent)).toEqual(resolution);
          expect(inspect(sent, { depth: 9 })).toBe(before);
          wellFormed(plugin, instance, sent);
        }
      },
    );

    test("never throws, whatever it is sent, and says nothing malformed", () => {
      const { instance } = made(authTypes[0] as string);
      for (const { request: sent } of sample.requests)
        for (const each of hostile(sent, 400)) wellFormed(plugin, instance, each);
    });

    test("a host that is not its own is unresolved, and gets no credential", async () => {
      const { instance } = made(authTypes[0] as string);
      await instance.start();
      const { host } = first;
      for (const other of [
        "evil.example",
        `${host}.evil.example`,
        `evil-${host}.example`,
        `${host}.`,
        `x.${host}.example`,
        "localhost",
        "127.0.0.1",
        "",
      ]) {
        const sent = { ...first, host: other };
        expect([other, instance.resolveAction(sent).kind]).toEqual([other, "unresolved"]);
        const injection = await injected(instance, sent);
        expect([other, injection?.set ?? [], injection?.setQuery ?? []]).toEqual([other, [], []]);
      }
      await instance.stop();
    });

    test.each([
      "/..",
      "/../x",
      "/%2e%2e/x",
      "/..%2fx",
      "//x",
      "/%00",
      "/..;/x",
      "\\..\\x",
      "/%c0%ae%c0%ae/x",
      "%252f..",
      "/%2e",
    ])("a path that ends in %j is not understood", (attack) => {
      if (sample.exceptions?.["paths are names"] !== undefined) return;
      if (sample.namesMayEnd?.ends.includes(attack) === true) return;
      const { instance } = made(authTypes[0] as string);
      for (const { request: sent } of sample.requests)
        expect([
          sent.path,
          understood(instance.resolveAction({ ...sent, path: sent.path + attack }), sample),
        ]).toEqual([sent.path, false]);
    });

    test.each(authTypes)(
      "%s: the credential goes on, and what the agent could bring in its place comes off",
      async (authType) => {
        const { instance, world } = made(authType);
        await instance.start();
        for (const { request: sent } of sample.requests) {
          const injection = await instance.injectCredentials(sent);
          const isSent =
            sample.exceptions?.["no header"] === undefined || authType !== "environment";
          expect(injection.set.length + injection.setQuery.length > 0).toBe(isSent);
          for (const [name, value] of injection.set) {
            expect(name).toMatch(HEADER);
            expect(value).toMatch(/^[\x20-\x7e]*$/);
            if (sample.exceptions?.["sets other headers"] === undefined)
              expect(plugin.credentialHeaders).toContain(name);
          }
          for (const [name] of injection.setQuery) expect(plugin.credentialQuery).toContain(name);
          for (const name of injection.remove) expect(name).toMatch(HEADER);
        }
        await instance.stop();
        expect(world.clock.pending).toEqual([]);
      },
    );

    test.each(authTypes)(
      "%s: a secret is seen in an injection and nowhere else",
      async (authType) => {
        const { instance, world, server } = made(authType);
        await instance.start();
        await instance.refreshToken();
        for (const { request: sent } of sample.requests) {
          await instance.injectCredentials(sent);
          expect(holdsSecret(JSON.stringify(instance.resolveAction(sent)), authType)).toBe(false);
        }
        expect(holdsSecret(inspect(instance, { depth: 12, showHidden: true }), authType)).toBe(
          false,
        );
        expect(holdsSecret(JSON.stringify(instance), authType)).toBe(false);
        server.respond = ({ body, headers }) =>
          new Response(`refused: ${body} ${JSON.stringify(Object.fromEntries(headers))}`, {
            status: 400,
          });
        await instance
          .refreshToken()
          .catch((error: unknown) =>
            expect(holdsSecret(inspect(error, { depth: 12 }), authType)).toBe(false),
          );
        await instance.stop();
        expect(holdsSecret(world.lines.join(""), authType)).toBe(false);
      },
    );

    test.each(authTypes)(
      "%s: with the token server away start goes on, and who asks is told",
      async (authType) => {
        const { instance, world, server } = made(authType, () => {
          throw new TypeError("fetch failed");
        });
        await instance.start();
        if (server.calls.length > 0) {
          const asked = Promise.resolve().then(() => instance.injectCredentials(first));
          await expect(asked).rejects.toBeInstanceOf(InjectionError);
          await asked.catch((error: unknown) =>
            expect(holdsSecret(inspect(error), authType)).toBe(false),
          );
          await expect(instance.refreshToken()).rejects.toBeInstanceOf(InjectionError);
        }
        await instance.stop();
        await instance.stop();
        expect(world.clock.pending).toEqual([]);
      },
    );
  });
}

/** Returns whether a request may be allowed without a rule of `policy.httpRules`. */
function understood(resolution: ActionResolution, { exceptions }: ContractSample): boolean {
  if (resolution.kind === "unresolved") return false;
  return exceptions?.["other paths by rule"] === undefined || resolution.onlyByRule !== true;
}

async function injected(
  instance: ProviderInstance,
  sent: ServiceRequest,
): Promise<Injection | undefined> {
  try {
    return await instance.injectCredentials(sent);
  } catch (error) {
    expect(error).toBeInstanceOf(InjectionError);
    return undefined;
  }
}

function wellFormed(
  plugin: ProviderPlugin,
  instance: ProviderInstance,
  sent: ServiceRequest,
): void {
  const resolution = instance.resolveAction(sent);
  if (resolution.kind === "unresolved") {
    expect(resolution.reason.length).toBeGreaterThan(5);
    return;
  }
  if (resolution.actions.length === 0) throw new Error(`resolved to nothing: ${inspect(sent)}`);
  for (const { action, broader = [], resources } of resolution.actions) {
    for (const name of [action, ...broader])
      if (!ACTION.test(name)) throw new Error(`${name} is no action: ${inspect(sent)}`);
    if (broader.includes(action)) throw new Error(`${action} covers itself: ${inspect(sent)}`);
    for (const resource of resources) {
      if (resource.kind !== "scoped") continue;
      // A scope's globs match by segment: values that are matched against them must not contain
      // path tricks.
      if (!Object.hasOwn(plugin.scopeKeys, resource.key) || resource.value === "")
        throw new Error(`${inspect(resource)}: ${inspect(sent)}`);
    }
  }
}

test("the suite's own requests are what they seem", () => {
  expect(request("GET https://a.example/b?c")).toMatchObject({
    method: "GET",
    host: "a.example",
    path: "/b",
    query: "c",
  });
});
