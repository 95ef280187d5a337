/**
 * Runs many guarded requests against one gateway, one after the other, and keeps what each of them
 * did: to the client, the provider, the classifier, the metrics and the audit chain.
 */
import type { Answer } from "../client.ts";
import type { Stack } from "../stack.ts";
import type { DialectName, Vendor } from "../vendors.ts";
import { until } from "../wait.ts";
import type { ClassifierStub } from "./classifier.ts";
import { post } from "./post.ts";
import type { GuardedApi, Place } from "./places.ts";
import { added, type AuditRecord, type Checks, checksOf, recordsOf, total } from "./records.ts";

/** A request of the table. */
export interface GuardedCase {
  /** Unique; part of its text. */
  readonly id: string;
  readonly api: GuardedApi;
  readonly place: Place;
  readonly stream: boolean;
  /** Bearer of the request. */
  readonly token: string;
  /** As named by the caller. */
  readonly model: string;
  readonly external: boolean;
  /** Number of checks that it should cause. */
  readonly checks: number;
}

export interface Observed {
  readonly answer: Answer;
  readonly callId: string;
  /** Requests that reached the provider. */
  readonly forwarded: number;
  /** Texts that the classifier was asked about. */
  readonly texts: readonly string[];
  readonly checks: Checks;
  /** Checks that the histogram of latencies counts. */
  readonly measured: number;
  /** Audit records of the call. */
  readonly records: readonly AuditRecord[];
}

export interface TableOptions {
  readonly stack: Stack;
  readonly vendors: Readonly<Record<DialectName, Vendor>>;
  readonly classifier: ClassifierStub;
  /** What the text contains beside the id. */
  readonly pattern: string;
}

/** Runs the cases, ends the gateway, and returns what was observed, by id. */
export async function runTable(
  cases: readonly GuardedCase[],
  options: TableOptions,
): Promise<ReadonlyMap<string, Observed>> {
  const found = new Map<string, Omit<Observed, "records">>();
  for (const one of cases) found.set(one.id, await observe(one, options));
  // Every record is on the disk when the gateway has ended.
  await options.stack.shutDown();
  const records = recordsOf(options.stack);
  return new Map(
    [...found].map(([id, seen]) => [
      id,
      { ...seen, records: records.filter(({ fields }) => fields["call"] === seen.callId) },
    ]),
  );
}

async function observe(
  one: GuardedCase,
  { stack, vendors, classifier, pattern }: TableOptions,
): Promise<Omit<Observed, "records">> {
  const { api, place, stream } = one;
  const text = `${pattern} ${one.id}`;
  const vendor = vendors[api.vendor];
  vendor.reset();
  vendor.always(api.reply(vendor, place === "response" ? text : "Hello there"));
  classifier.reset();
  const before = await stack.metrics();
  const { body } = api.sample(
    place === "response" ? "user" : place,
    place === "response" ? "Hi" : text,
  );
  const port = one.external ? stack.externalPort : stack.port;
  const answer = await post({
    port,
    path: (one.external ? "/ext" : "") + api.path(one.model, stream),
    token: one.token,
    body: { ...api.rest(one.model, stream), ...body },
  });
  const earlier = checksOf(before);
  // A streamed answer is scanned after it was forwarded.
  const after = await until(
    async () => {
      const metrics = await stack.metrics();
      const checks = total(checksOf(metrics)) - total(earlier);
      return checks >= one.checks && metrics;
    },
    { what: `${one.checks} checks of ${one.id}`, timeoutMs: 5_000 },
  ).catch(() => stack.metrics());
  const measured = "svc_guard_latency_seconds_count";
  return {
    answer,
    callId: String(answer.headers["x-svc-call-id"]),
    forwarded: vendor.requests.length,
    texts: classifier.texts(),
    checks: added(earlier, checksOf(after)),
    measured: after.sum(measured) - before.sum(measured),
  };
}
