/** `svc get`. */
import { Command, Option } from "commander";
import type { Backend, ObjectView } from "./backend.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";
import { KIND_NAMES, type KindName, kindName } from "./kinds.ts";
import { objectArguments } from "./object-arguments.ts";
import { type NamespaceFlags, type TargetFlags, withNamespace, withTarget } from "./options.ts";
import { OUTPUTS, type Output, renderObjects, renderYaml } from "./render-objects.ts";
import { renderTools } from "./render-tools.ts";
import { renderMetrics } from "./render-metrics.ts";

interface Flags extends TargetFlags, NamespaceFlags {
  readonly allNamespaces?: true;
  readonly output?: Output;
}

/** Names of an Agent's definition: the applied object, without its state. */
const DEFINITION = /^agent-?def(?:inition)?s?$/i;

export function getCommand(context: Context): Command {
  const command = new Command("get")
    .description("Show objects, an Agent's definition, tools of MCP servers, or metrics.")
    .argument(
      "<kind>",
      `${KIND_NAMES.map(({ plural }) => plural).join(", ")}, ` +
        "agent-def, tools, metrics; or <kind>/<name>",
    )
    .argument("[names...]", "names of the objects; default: all");
  return withTarget(withNamespace(command, "namespace of the objects"))
    .option("-A, --all-namespaces", "objects of all namespaces")
    .addOption(
      new Option(
        "-o, --output <format>",
        "output format; default table, for an agent-def yaml",
      ).choices(OUTPUTS),
    )
    .addHelpText(
      "after",
      `
TOKENS, REQUESTS and COST are of today (UTC). Of metrics, -o wide is Prometheus' text.
Guards have the checks since the gateways started: those that FLAGGED something, and those for which the classifier was
UNAVAILABLE.
Tools are asked for at the MCP server: which ones it has, whether its Provider allows them, and which AccessKeys may use
them.
A spec is shown as it is in force, with its defaults. A Secret shows the names of its keys, never a value.

Examples:
  svc get agents
  svc get agent hello -o yaml
  svc get agent-def hello > hello.yaml
  svc get access-keys -A -o wide
  svc get guards
  svc get tools tracker
  svc get metrics`,
    )
    .action(async (kind: string, names: readonly string[], flags: Flags) => {
      const backend = await context.backend(flags);
      if (kind === "metrics" || kind === "metric")
        return getMetrics(context, backend, names, flags);
      if (kind === "tools" || kind === "tool") return getTools(context, backend, names, flags);
      if (DEFINITION.test(kind)) return getDefinitions(context, backend, names, flags);
      return getObjects(context, backend, objectArguments(kind, names), flags);
    });
}

async function getObjects(
  context: Context,
  backend: Backend,
  { kind, names }: { kind: KindName; names: readonly string[] },
  flags: Flags,
): Promise<void> {
  const objects = await find(backend, kind, names, flags);
  const output = flags.output ?? "table";
  if (objects.length === 0 && (output === "table" || output === "wide"))
    return context.stderr(
      `No ${kind.plural} ` +
        (flags.allNamespaces === true ? "in any namespace" : `in namespace ${flags.namespace}`) +
        ".\n",
    );
  const namespaces = flags.allNamespaces === true;
  context.stdout(
    renderObjects(kind.kind, objects, {
      output,
      single: names.length === 1,
      namespaces,
      now: context.now(),
    }),
  );
}

async function getDefinitions(
  context: Context,
  backend: Backend,
  names: readonly string[],
  flags: Flags,
): Promise<void> {
  const agents = await find(backend, kindName("Agent"), names, flags);
  const output = flags.output ?? "yaml";
  if (output !== "yaml" && output !== "json") {
    return context.stdout(
      renderObjects("Agent", agents, {
        output,
        single: names.length === 1,
        namespaces: flags.allNamespaces === true,
        now: context.now(),
      }),
    );
  }
  const definitions = agents.map(
    ({ status: _status, metadata: { resourceVersion: _version, ...metadata }, ...rest }) => ({
      apiVersion: rest.apiVersion,
      kind: rest.kind,
      metadata,
      spec: rest.spec,
    }),
  );
  context.stdout(
    output === "yaml"
      ? renderYaml(definitions)
      : `${JSON.stringify(names.length === 1 ? definitions[0] : definitions, null, 2)}\n`,
  );
}

/** @throws CliError if a given name does not exist */
async function find(
  backend: Backend,
  kind: KindName,
  names: readonly string[],
  flags: Flags,
): Promise<readonly ObjectView[]> {
  if (names.length === 0)
    return backend.list(kind.kind, flags.allNamespaces === true ? undefined : flags.namespace);
  if (flags.allNamespaces === true)
    throw CliError.usage("an object of a name is in one namespace: use -n, not -A");
  const found: ObjectView[] = [];
  for (const name of names) {
    const object = await backend.get(kind.kind, flags.namespace, name);
    if (object === undefined)
      throw new CliError(`there is no ${kind.singular} ${name} in namespace ${flags.namespace}`);
    found.push(object);
  }
  return found;
}

async function getTools(
  context: Context,
  backend: Backend,
  names: readonly string[],
  flags: Flags,
): Promise<void> {
  const output = flags.output ?? "table";
  if (output === "yaml" || output === "name")
    throw CliError.usage("tools are printed as table, wide or json");
  const [provider, ...others] = names;
  if (provider === undefined || others.length > 0 || flags.allNamespaces === true)
    throw CliError.usage("name one Provider of type mcp: svc get tools <provider>");
  const view = await backend.tools(flags.namespace, provider);
  if (view.tools.length === 0 && output !== "json")
    return context.stderr(`The MCP server ${provider} offers no tools.\n`);
  context.stdout(renderTools(view, output));
}

async function getMetrics(
  context: Context,
  backend: Backend,
  names: readonly string[],
  flags: Flags,
): Promise<void> {
  const output = flags.output ?? "table";
  if (output === "yaml" || output === "name")
    throw CliError.usage("metrics are printed as table, wide (Prometheus' text) or json");
  context.stdout(renderMetrics(await backend.metrics(), output, names));
}
