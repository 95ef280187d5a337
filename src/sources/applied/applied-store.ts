/**
 * Stores objects from the control API as files of the watched folder: one file per object in
 * `applied/`, so that the folder remains the only source of truth, other processes that watch it
 * see the same objects, and objects survive a restart. Writes are serialized. A file is written
 * under a temporary name and renamed, so that no reader sees a partial file.
 */
import { randomBytes } from "node:crypto";
import { chmod, lstat, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import path from "node:path";
import type { ResourceKind } from "../../resources/kinds.ts";
import { resourceId } from "../../resources/kinds.ts";
import { parseDocuments } from "../../resources/parse.ts";
import { formatProblem } from "../../resources/problem.ts";
import { readDocuments } from "../../resources/yaml.ts";
import { inParallel } from "../folder/scan.ts";
import { AppliedError } from "./applied-error.ts";
import { documentText, type Manifest, type ManifestObject, readManifests } from "./manifest.ts";
import { patchDocument } from "./merge-patch.ts";

/** Subfolder of the folder of resources. */
export const APPLIED_FOLDER = "applied";

export interface ObjectRef {
  readonly kind: ResourceKind;
  readonly namespace: string;
  readonly name: string;
}

export type Change = "created" | "configured" | "unchanged";

export interface Applied extends ObjectRef {
  readonly change: Change;
}

export interface AppliedStoreOptions {
  /** The folder of resources. */
  readonly dir: string;
  /** Rescans the folder. */
  readonly refresh: () => Promise<unknown>;
  /** Resolves when the result of the scan is in force. */
  readonly inForce: () => Promise<void>;
  /** Returns the place where the folder defines an object, as `file:line`, by its id. */
  readonly placeOf: (id: string) => string | undefined;
}

export class AppliedStore {
  readonly #options: AppliedStoreOptions;
  readonly #dir: string;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: AppliedStoreOptions) {
    this.#options = options;
    this.#dir = path.join(options.dir, APPLIED_FOLDER);
  }

  /**
   * Applies all objects of the manifests, or none.
   * @param create refuse objects that exist
   * @throws AppliedError
   */
  apply(
    manifests: readonly Manifest[],
    { create = false }: { readonly create?: boolean } = {},
  ): Promise<readonly Applied[]> {
    return this.#alone(async () => {
      const read = readManifests(manifests);
      if (read.kind === "refused") throw AppliedError.invalid(read.problems.map(formatProblem));
      if (read.objects.length === 0)
        throw AppliedError.invalid(["nothing to apply: the input contains no object"]);
      await this.#look();
      const elsewhere = read.objects
        .map((object) => this.#elsewhere(object))
        .filter((text) => text !== undefined);
      if (elsewhere.length > 0) throw new AppliedError("conflict", elsewhere);
      const planned: { object: ManifestObject; change: Change }[] = [];
      for (const object of read.objects) {
        const before = await this.#read(object.resource);
        planned.push({
          object,
          change:
            before === undefined ? "created" : before === object.text ? "unchanged" : "configured",
        });
      }
      const existing = planned.filter(({ change }) => create && change !== "created");
      if (existing.length > 0)
        throw new AppliedError(
          "exists",
          existing.map(({ object }) => `${label(object.resource)} exists already`),
        );
      await this.#write(
        planned.filter(({ change }) => change !== "unchanged").map(({ object }) => object),
      );
      await this.#settle();
      return planned.map(({ object: { resource }, change }) => ({
        kind: resource.kind,
        namespace: resource.namespace,
        name: resource.name,
        change,
      }));
    });
  }

  /**
   * Changes an object by a JSON merge patch (RFC 7396). A patch with `metadata.resourceVersion`
   * requires that version.
   * @throws AppliedError
   */
  patch(ref: ObjectRef, patch: unknown): Promise<Applied> {
    return this.#alone(async () => {
      await this.#look();
      const before = await this.#existing(ref, "patched");
      const wanted = demandedVersion(patch);
      if (wanted !== undefined && wanted !== parseDocuments(before, "").resources[0]?.version) {
        throw new AppliedError("conflict", [
          `${label(ref)} has changed in the meantime: check it again, and retry`,
        ]);
      }
      const [first] = readDocuments(before);
      if (first === undefined)
        throw AppliedError.invalid([`${fileName(ref)} holds no object: remove the file`]);
      const text = documentText(patchDocument(first.document, patch));
      const read = readManifests([{ source: `${label(ref)}, patched`, text }]);
      if (read.kind === "refused") throw AppliedError.invalid(read.problems.map(formatProblem));
      const [object] = read.objects;
      if (object === undefined || object.id !== resourceId(ref))
        throw AppliedError.invalid([
          `a patch cannot change the kind, namespace or name of ${label(ref)}`,
        ]);
      const change: Change = object.text === before ? "unchanged" : "configured";
      if (change === "configured") await this.#write([object]);
      await this.#settle();
      return { ...ref, change };
    });
  }

  /** @throws AppliedError */
  delete(ref: ObjectRef): Promise<void> {
    return this.#alone(async () => {
      await this.#look();
      await this.#existing(ref, "deleted");
      await orExplain(this.#options.dir, async () => rm(this.#fileOf(ref)));
      await this.#settle();
    });
  }

  #look(): Promise<void> {
    return orExplain(this.#options.dir, async () => void (await this.#options.refresh()));
  }

  async #settle(): Promise<void> {
    await this.#look();
    await this.#options.inForce();
  }

  /** Returns the text of the object's file. @throws AppliedError if there is none */
  async #existing(ref: ObjectRef, verb: string): Promise<string> {
    const text = await this.#read(ref);
    if (text !== undefined) return text;
    const place = this.#options.placeOf(resourceId(ref));
    throw place === undefined
      ? new AppliedError("not-found", [`there is no ${label(ref)}`])
      : new AppliedError("conflict", [
          `${label(ref)} is defined in ${place}, and is not ${verb} here: edit that file`,
        ]);
  }

  /** Returns the problem with applying an object that another file defines. */
  #elsewhere({ id, resource }: ManifestObject): string | undefined {
    const place = this.#options.placeOf(id);
    if (place === undefined || place.startsWith(`${APPLIED_FOLDER}/${fileName(resource)}:`))
      return undefined;
    return (
      `${label(resource)} is defined in ${place}: edit that file, or take the object out of ` +
      "it and apply again"
    );
  }

  async #read(ref: ObjectRef): Promise<string | undefined> {
    try {
      return await readFile(this.#fileOf(ref), "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw explain(error, this.#options.dir);
    }
  }

  /** All files are first written under temporary names: a full disk changes nothing. */
  async #write(objects: readonly ManifestObject[]): Promise<void> {
    if (objects.length === 0) return;
    const staged = objects.map(({ resource, text }) => ({
      from: path.join(this.#dir, `.${randomBytes(12).toString("hex")}.tmp`),
      to: this.#fileOf(resource),
      text,
    }));
    try {
      await orExplain(this.#options.dir, async () => {
        await this.#prepare();
        // All writes end before the first failure is reported, so that none is written after the
        // others were removed.
        const written = await inParallel(staged, ({ from, text }) =>
          writeSynced(from, text).catch((error: unknown) => ({ error })),
        );
        for (const failure of written) if (failure !== undefined) throw failure.error;
        for (const { from, to } of staged) await rename(from, to);
      });
    } finally {
      await Promise.all(staged.map(({ from }) => rm(from, { force: true }).catch(() => undefined)));
    }
  }

  /** The folder contains Secrets: it must be private to this user, and a folder, not a link. */
  async #prepare(): Promise<void> {
    await mkdir(this.#dir, { mode: 0o700 }).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    });
    const stats = await lstat(this.#dir);
    if (!stats.isDirectory())
      throw new AppliedError("unwritable", [`${this.#dir} is not a folder: move it away`]);
    if ((stats.mode & 0o077) !== 0) await chmod(this.#dir, 0o700);
  }

  #fileOf(ref: ObjectRef): string {
    return path.join(this.#dir, fileName(ref));
  }

  async #alone<Result>(work: () => Promise<Result>): Promise<Result> {
    const run = this.#last.then(work);
    this.#last = run.catch(() => undefined);
    return run;
  }
}

async function writeSynced(name: string, text: string): Promise<void> {
  const file = await open(name, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** `agent.default.hello.yaml`. Kind, namespace and name are validated and contain no `/`. */
function fileName({ kind, namespace, name }: ObjectRef): string {
  const file = `${kind}.${namespace}.${name}.yaml`.toLowerCase();
  if (/[^a-z0-9.-]/.test(file) || file.includes(".."))
    throw AppliedError.invalid([`${kind} ${namespace}/${name} is not a valid object name`]);
  // Maximum length of file names in file systems, minus the suffix of temporary names.
  if (file.length > 255)
    throw AppliedError.invalid([
      `${kind} ${name}: the name is too long to be kept as a file; put it in a file of the ` +
        "folder instead",
    ]);
  return file;
}

/** `Agent default/hello`. */
function label({ kind, namespace, name }: ObjectRef): string {
  return `${kind} ${namespace}/${name}`;
}

function demandedVersion(patch: unknown): string | undefined {
  const version = (patch as { metadata?: { resourceVersion?: unknown } } | null)?.metadata
    ?.resourceVersion;
  return typeof version === "string" ? version : undefined;
}

async function orExplain(dir: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw explain(error, dir);
  }
}

function explain(error: unknown, dir: string): unknown {
  if (error instanceof AppliedError) return error;
  const code = (error as NodeJS.ErrnoException).code;
  if (code === undefined) return error;
  const why =
    code === "EROFS" || code === "EACCES" || code === "EPERM"
      ? "cannot be written"
      : "could not be written";
  return new AppliedError("unwritable", [
    `the resource folder ${dir} ${why} (${code}): make it writable for svc up, or edit its ` +
      "files directly",
  ]);
}
