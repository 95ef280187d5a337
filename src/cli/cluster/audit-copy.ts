/** Copies the audit chains of an installation, through a shell in containers of its pods. */
import { closeSync, mkdirSync, openSync, readSync, statSync, truncateSync } from "node:fs";
import path from "node:path";
import { CHECKPOINTS, findChains, listChain, segmentName } from "../../audit/chain/layout.ts";
import { AuditError } from "../../audit/errors.ts";
import { ApiError } from "../../kubernetes/connection.ts";
import { execInPod } from "../../kubernetes/exec.ts";
import { AUDIT_DIR } from "../../pod/sidecar-options.ts";
import type { CopiedChains } from "../cluster-access.ts";
import type { AtEnd } from "../temporary-folder.ts";
import { READER_CONTAINER, ReaderError, withReader } from "./audit-reader.ts";
import { type ChainSource, sourcesOf } from "./audit-sources.ts";
import { ARCHIVE_SCRIPT, ArchiveError, ArchiveReader } from "./chain-archive.ts";
import type { ClusterSession } from "./session.ts";

/** Folder of the chains in the containers of gateways, sidecars and readers. */
const CHAINS = path.posix.join(AUDIT_DIR, "audit");

/**
 * @param workload `<namespace>/<name>` or `ext:<key>`; undefined for all
 * @throws ApiError if pods cannot be listed
 */
export async function copyChains(
  session: ClusterSession,
  dir: string,
  workload: string | undefined,
  atEnd: AtEnd,
): Promise<readonly CopiedChains[]> {
  const copied: CopiedChains[] = [];
  // One after the other: chains are large, and the connections share the API server.
  for (const source of await sourcesOf(session, workload)) {
    const target = path.join(dir, String(copied.length));
    mkdirSync(target, { mode: 0o700 });
    const problem = await copyOne(session, source, target, atEnd);
    copied.push({ place: source.place, dir: target, problem });
  }
  return copied;
}

/** @returns why the chains were not copied; undefined if they were */
async function copyOne(
  session: ClusterSession,
  source: ChainSource,
  dir: string,
  atEnd: AtEnd,
): Promise<string | undefined> {
  try {
    switch (source.via) {
      case "nothing":
        return source.problem;
      case "container":
        await copyFrom(session, source, source.prefix, dir);
        break;
      case "reader": {
        const { reader, prefix } = source;
        const { namespace } = reader;
        await withReader(session, reader, atEnd, (pod) =>
          copyFrom(session, { namespace, pod, container: READER_CONTAINER }, prefix, dir),
        );
      }
    }
    return undefined;
  } catch (error) {
    if (
      error instanceof ApiError ||
      error instanceof ArchiveError ||
      error instanceof AuditError ||
      error instanceof ReaderError
    )
      return error.message;
    throw error;
  }
}

async function copyFrom(
  { connection }: ClusterSession,
  {
    namespace,
    pod,
    container,
  }: { readonly namespace: string; readonly pod: string; readonly container: string },
  prefix: string,
  dir: string,
): Promise<void> {
  const reader = new ArchiveReader(dir);
  try {
    await execInPod(connection, {
      namespace,
      pod,
      container,
      command: ["/bin/sh", "-c", ARCHIVE_SCRIPT, "sh", CHAINS, prefix],
      onOutput: (part) => reader.write(part),
    });
    reader.end();
  } finally {
    reader.close();
  }
  for (const chain of findChains(dir)) cutPartialLines(chain.dir);
}

/** The last lines of a living chain may have been written in part when they were copied. */
function cutPartialLines(dir: string): void {
  const last = listChain(dir).segments.at(-1);
  for (const name of [CHECKPOINTS, ...(last === undefined ? [] : [segmentName(last)])]) {
    const file = path.join(dir, name);
    const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    const whole = endOfLastLine(file, size);
    if (whole !== size) truncateSync(file, whole);
  }
}

const BLOCK = 64 * 1024;

function endOfLastLine(file: string, size: number): number {
  if (size === 0) return 0;
  const descriptor = openSync(file, "r");
  try {
    const block = Buffer.alloc(BLOCK);
    for (let end = size; end > 0; end -= BLOCK) {
      const start = Math.max(0, end - BLOCK);
      const read = readSync(descriptor, block, 0, end - start, start);
      const at = block.subarray(0, read).lastIndexOf("\n");
      if (at >= 0) return start + at + 1;
    }
    return 0;
  } finally {
    closeSync(descriptor);
  }
}
