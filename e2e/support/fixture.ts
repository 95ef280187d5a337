/** The usual stack: one fake of each vendor, a provider for each, an agent that may use all. */
import { afterAll, beforeAll, beforeEach } from "vitest";
import { agentYaml, type ProviderOptions, providerYaml } from "./resources.ts";
import { Stack } from "./stack.ts";
import { type DialectName, DIALECTS, Vendor } from "./vendors.ts";

export interface Fixture {
  readonly stack: Stack;
  readonly vendors: Readonly<Record<DialectName, Vendor>>;
  readonly token: string;
}

export interface FixtureOptions {
  /** By vendor. */
  readonly providers?: Partial<Readonly<Record<DialectName, ProviderOptions>>>;
  /** More files, depending on the fakes. */
  readonly files?: (
    vendors: Readonly<Record<DialectName, Vendor>>,
  ) => Readonly<Record<string, string>>;
  readonly models?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** More flags of `svc up`. */
  readonly args?: readonly string[];
  readonly rateLimits?: Readonly<Record<string, number>>;
}

/** Started before all tests of the file; the fakes' scripts are reset before each test. */
export function useFixture(options: FixtureOptions = {}): Fixture {
  const fixture: { stack?: Stack; vendors?: Record<DialectName, Vendor>; token?: string } = {};
  beforeAll(async () => {
    const [openai, anthropic, gemini] = await Promise.all(
      DIALECTS.map(async (name) => Vendor.start(name)),
    );
    const vendors = { openai, anthropic, gemini } as Record<DialectName, Vendor>;
    const files: Record<string, string> = {
      "agent.yaml": agentYaml(
        "agent",
        options.models ?? ["openai/*", "anthropic/*", "gemini/*"],
        options.rateLimits,
      ),
    };
    for (const name of DIALECTS)
      files[`${name}.yaml`] = providerYaml(name, vendors[name], options.providers?.[name]);
    Object.assign(files, options.files?.(vendors));
    fixture.vendors = vendors;
    fixture.stack = await Stack.start({
      files,
      ...(options.env === undefined ? {} : { env: options.env }),
      ...(options.args === undefined ? {} : { args: options.args }),
    });
    fixture.token = await fixture.stack.token("agent");
  });
  beforeEach(() => {
    for (const vendor of Object.values(fixture.vendors ?? {})) vendor.reset();
  });
  afterAll(async () => {
    await fixture.stack?.stop();
    await Promise.all(Object.values(fixture.vendors ?? {}).map(async (vendor) => vendor.close()));
  });
  const ready = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error("the stack is not up yet");
    return value;
  };
  return {
    get stack() {
      return ready(fixture.stack);
    },
    get vendors() {
      return ready(fixture.vendors);
    },
    get token() {
      return ready(fixture.token);
    },
  };
}
