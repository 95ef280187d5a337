/**
 * `svc audit`: reads and verifies the audit chains from their files alone: those of a folder, or
 * copies of those in a cluster's pods.
 */
import { Command, InvalidArgumentError, Option } from "commander";
import { AuditError } from "../audit/errors.ts";
import { createFilter, workloadOf } from "../audit/reader/filter.ts";
import { findChains } from "../audit/chain/layout.ts";
import { printable, renderReport, tableHead, tableRow } from "../audit/reader/present.ts";
import { loadPublicKey } from "../audit/chain/signing-key.ts";
import { AuditLog, type Filter, type Found } from "../audit/reader/tail.ts";
import { type ChainReport, verifyChain } from "../audit/reader/verify.ts";
import { readWitness } from "../audit/reader/witness.ts";
import { parseDuration } from "../platform/duration.ts";
import { statePaths } from "../host/state.ts";
import { type AuditSession, processSession } from "./audit-session.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";
import { parseCount, repeatable, type TargetFlags, withNamespace, withTarget } from "./options.ts";
import { plain } from "./table.ts";
import { clusterOf } from "./target.ts";
import { withTemporaryFolder } from "./temporary-folder.ts";

type Needs = Pick<Context, "env" | "stdout" | "stderr" | "setExitCode" | "now" | "cluster">;

interface DirFlags extends TargetFlags {
  readonly auditDir?: string;
}

interface ReadFlags extends DirFlags {
  readonly namespace: string;
  readonly type?: string;
  readonly since?: string;
  readonly output: "table" | "json" | "wide";
  readonly follow?: boolean;
}

interface VerifyFlags extends DirFlags {
  readonly publicKey?: readonly string[];
  readonly witness?: readonly string[];
  readonly fromCheckpoint?: { readonly seq: number; readonly hash?: string };
  readonly maxUnsigned: number;
  readonly output: "table" | "json";
}

/** @param session determines an early end: SIGINT, or a closed output */
export function auditCommand(
  context: Needs,
  session: () => AuditSession = processSession,
): Command {
  const command = withNamespace(
    withDirs(
      new Command("audit")
        .description("Show what agents did, from the audit chains.")
        .argument(
          "[agent]",
          "an agent's name, <namespace>/<name>, or ext:<access key>; without it, all",
        ),
    ),
    "namespace of a bare name",
  )
    .option("--type <part,part>", "only types that contain one of these, in any case")
    .option(
      "--since <when>",
      "only records newer than this: 30s, 5m, 2h, 7d, or a time such as 2026-01-31T12:00:00Z",
    )
    .addOption(
      new Option("-o, --output <format>", "output format; json prints one record per line")
        .choices(["table", "wide", "json"])
        .default("table"),
    )
    .option("-f, --follow", "keep printing new records")
    .addHelpText(
      "after",
      "\nExamples:\n  svc audit hello --since 2h\n  svc audit team/hello --type llm,guard " +
        "-o json\n  svc audit --follow\n  svc audit verify",
    )
    .action((agent: string | undefined, flags: ReadFlags) =>
      worded(() => show(agent, flags, context, session)),
    );
  command.addCommand(verifyCommand(context));
  return command;
}

function verifyCommand(context: Needs): Command {
  return withDirs(
    new Command("verify")
      .description(
        "Verify offline that no record of the audit chains was edited, deleted, inserted, " +
          "moved or truncated.",
      )
      .argument("[dir]", "folder of chains, or of one chain"),
  )
    .addOption(
      repeatable(
        "--public-key <file>",
        "public key to trust, instead of the one in the chain's folder",
      ),
    )
    .addOption(
      repeatable(
        "--witness <what>",
        "[<writer>:]<seq>:<hash> from a trusted source, or a file of such lines or of the " +
          "service's log",
      ),
    )
    .option(
      "--from-checkpoint <seq[:hash]>",
      "records up to this one, which a checkpoint signs, were archived",
      parseCheckpoint,
    )
    .option(
      "--max-unsigned <count>",
      "maximum number of records after the last checkpoint",
      parseCount,
      10_000,
    )
    .addOption(
      new Option("-o, --output <format>", "output format")
        .choices(["table", "json"])
        .default("table"),
    )
    .addHelpText(
      "after",
      "\nExit code: 0 valid, 1 error found, 2 usage error.\n\nExamples:\n  svc audit " +
        "verify\n  svc audit verify /backup/audit --public-key trusted.pub\n  svc audit " +
        "verify --witness gateway.log",
    )
    .action((dir: string | undefined, _flags: VerifyFlags, command: Command) =>
      worded(async () => {
        const flags = ownFlags(command);
        await onChains(dir, flags, undefined, context, async (chains) =>
          verify(chains, flags, context),
        );
      }),
    );
}

/** Commander assigns flags known to both commands to the parent, wherever they are. */
function ownFlags(command: Command): VerifyFlags {
  const flags: Record<string, unknown> = command.opts();
  const above = command.parent;
  for (const { long, attributeName } of above?.options.map((option) => ({
    long: option.long,
    attributeName: option.attributeName(),
  })) ?? []) {
    if (above?.getOptionValueSource(attributeName) !== "cli") continue;
    if (!(attributeName in SHARED))
      throw CliError.usage(`svc audit verify has no flag ${long}: it verifies whole chains.`);
    if (command.getOptionValueSource(attributeName) !== "cli")
      flags[attributeName] = above.getOptionValue(attributeName);
  }
  if (flags["output"] !== "table" && flags["output"] !== "json")
    throw CliError.usage("svc audit verify prints table or json (-o).");
  return flags as unknown as VerifyFlags;
}

const SHARED: { readonly [name in keyof DirFlags | "output"]: true } = {
  auditDir: true,
  stateDir: true,
  context: true,
  kubeconfig: true,
  systemNamespace: true,
  output: true,
};

function withDirs(command: Command): Command {
  return withTarget(
    command.option(
      "--audit-dir <dir>",
      "folder of the chains (default: audit in the state folder)",
    ),
  );
}

/** Folders of chains. */
interface Chains {
  readonly dirs: readonly string[];
  /** Where they are, for messages. */
  readonly place: string;
  /** How they are verified, for messages. */
  readonly verify: string;
}

/** Runs an action on folders of chains: that of this machine, or copies of a cluster's. */
async function onChains(
  named: string | undefined,
  flags: DirFlags,
  workload: string | undefined,
  context: Needs,
  action: (chains: Chains) => Promise<void>,
): Promise<void> {
  const given = named ?? flags.auditDir;
  const cluster = given === undefined ? clusterOf(flags, context.env) : undefined;
  if (cluster === undefined) {
    const dir = given ?? statePaths(flags.stateDir, context.env).auditDir;
    return action({ dirs: [dir], place: dir, verify: `svc audit verify ${dir}` });
  }
  const access = await context.cluster(cluster);
  await withTemporaryFolder("svc-audit-", async (copy, atEnd) => {
    const copied = await access.copyChains(copy, workload, atEnd);
    const unread = copied.filter(({ problem }) => problem !== undefined);
    context.stderr(
      `Read the audit chains of ${copied.length - unread.length} of ${copied.length} pods and ` +
        "claims.\n",
    );
    for (const { place, problem } of unread)
      context.stderr(`svc: the chains of ${place} were not read: ${plain(problem ?? "")}\n`);
    const dirs = copied.flatMap(({ dir, problem }) => (problem === undefined ? [dir] : []));
    await action({ dirs, place: "the pods and claims of the cluster", verify: "svc audit verify" });
    if (unread.length > 0) context.setExitCode(1);
  });
}

async function show(
  agent: string | undefined,
  flags: ReadFlags,
  context: Needs,
  session: () => AuditSession,
): Promise<void> {
  const since = flags.since === undefined ? undefined : parseSince(flags.since, context.now());
  const workload = agent === undefined ? undefined : workloadOf(agent, flags.namespace);
  if (flags.follow === true && flags.auditDir === undefined && clusterOf(flags, context.env))
    throw CliError.usage(
      "svc audit does not follow the chains of a cluster: leave out --follow, and ask again.",
    );
  await onChains(undefined, flags, workload, context, async (chains) => {
    const filter = createFilter({ workload, types: flags.type?.split(",") ?? [], since });
    await showChains(chains, { filter, since }, flags, context, session());
  });
}

async function showChains(
  { dirs, place, verify }: Chains,
  { filter, since }: { readonly filter: Filter; readonly since: number | undefined },
  flags: ReadFlags,
  context: Needs,
  session: AuditSession,
): Promise<void> {
  try {
    const log = new AuditLog(dirs, filter, since);
    if (log.chains === 0 && flags.follow !== true) throw noChain(place);
    if (flags.output !== "json") context.stdout(`${tableHead(flags.output === "wide")}\n`);
    do {
      await print(log.read(), flags.output, context, session);
    } while (flags.follow === true && (await session.wait()));
    if (log.unreadable > 0)
      context.stderr(`svc: ${log.unreadable} lines are not records. Look with: ${verify}\n`);
  } finally {
    session.end();
  }
}

/** Number of characters printed at once. */
const PAGE = 64 * 1024;

async function print(
  found: Iterable<Found>,
  output: ReadFlags["output"],
  { stdout }: Needs,
  session: AuditSession,
): Promise<void> {
  let page = "";
  for (const { record, line } of found) {
    page += `${output === "json" ? line : tableRow(record, output === "wide")}\n`;
    if (page.length < PAGE) continue;
    stdout(page);
    page = "";
    if (!(await session.turn())) return;
  }
  if (page !== "") stdout(page);
}

async function verify({ dirs, place }: Chains, flags: VerifyFlags, context: Needs): Promise<void> {
  const keys = (flags.publicKey ?? []).map(loadPublicKey);
  const witnesses = (flags.witness ?? []).flatMap(readWitness);
  const chains = dirs.flatMap(findChains);
  if (chains.length === 0) throw noChain(place);
  if (
    chains.length > 1 &&
    (flags.fromCheckpoint !== undefined || witnesses.some(({ chain }) => chain === undefined))
  ) {
    throw CliError.usage(
      `There are ${chains.length} chains in ${place}: name the folder of one, or the writer ` +
        "in --witness <writer>:<seq>:<hash>.",
    );
  }
  const names = new Set(chains.map(({ name }) => name));
  const reports: ChainReport[] = chains.map((chain) =>
    verifyChain(chain, {
      keys,
      witnesses: witnesses.filter(
        (witness) => witness.chain === undefined || witness.chain === chain.name,
      ),
      from: flags.fromCheckpoint,
      maxUnsigned: flags.maxUnsigned,
    }),
  );
  const gone = [...new Set(witnesses.map(({ chain }) => chain))].filter(
    (chain) => chain !== undefined && !names.has(chain),
  );
  if (flags.output === "json")
    context.stdout(
      JSON.stringify(
        {
          good: gone.length === 0 && reports.every(({ fault }) => fault === undefined),
          missing: gone,
          chains: reports,
        },
        null,
        2,
      ) + "\n",
    );
  else {
    for (const report of reports) context.stdout(`${renderReport(report)}\n`);
    for (const chain of gone)
      context.stdout(
        `${printable(String(chain))}: BAD\n  A witness has a record of the chain, which is ` +
          `not in ${place}.\n`,
      );
  }
  context.setExitCode(
    gone.length === 0 && reports.every(({ fault }) => fault === undefined) ? 0 : 1,
  );
}

function noChain(place: string): AuditError {
  return new AuditError(
    `There is no audit chain in ${place}. Name another place with --audit-dir, --state-dir or ` +
      "--context.",
  );
}

function parseSince(text: string, now: number): number {
  const duration = parseDuration(text);
  if (duration !== undefined) return now - duration;
  // RFC 3339: a date, a time and its offset.
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i.test(text)
    ? Date.parse(text)
    : Number.NaN;
  if (Number.isNaN(time))
    throw CliError.usage(
      `--since ${JSON.stringify(text)} is neither a duration (30s, 5m, 2h, 7d) nor a time ` +
        "(2026-01-31T12:00:00Z).",
    );
  return time;
}

function parseCheckpoint(text: string): { readonly seq: number; readonly hash?: string } {
  const match = /^(\d{1,15})(?::([0-9a-f]{64}))?$/.exec(text);
  if (match === null)
    throw new InvalidArgumentError(
      "expected a record's number, with its hash if known: 1000 or 1000:<hash>",
    );
  return match[2] === undefined
    ? { seq: Number(match[1]) }
    : { seq: Number(match[1]), hash: match[2] };
}

/** Converts errors to the command line's form. */
async function worded(action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    if (error instanceof AuditError) throw new CliError(error.message);
    throw error;
  }
}
