/** Formats the gateway's state for `svc up` and `svc status`. */
import type { AuditState } from "../audit/sink.ts";
import type { NodeStatus } from "../envoy/xds/ads.ts";
import type { AuditStatus } from "../gateway/status.ts";
import { formatSize } from "../platform/size.ts";
import { table } from "./table.ts";

/** Maximum number of objects that are all listed; of more, only those that need attention are. */
const LIST_ALL_UP_TO = 20;

/** State of an object, of a svc up or in a cluster. */
export interface ObjectState {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly ready: boolean;
  readonly reason: string;
  readonly message: string;
}

/** State of a svc up, or of an installation in a cluster. */
export interface StatusReport {
  readonly ready: boolean;
  /** Reason; undefined if ready. */
  readonly reason: string | undefined;
  readonly objects: readonly ObjectState[];
  /** Parts that are not in use as written. */
  readonly problems: readonly string[];
  readonly envoys: readonly NodeStatus[];
  /** State of the audit chain, the worst of several; undefined if there is none. */
  readonly audit?: AuditStatus | undefined;
}

export function renderStatus(status: StatusReport): string {
  const all = status.objects.length <= LIST_ALL_UP_TO;
  const shown = all ? status.objects : status.objects.filter((object) => object.reason !== "Ready");
  const lines: string[] = [];
  if (shown.length > 0) {
    const rows = shown.map((object) => [
      object.kind,
      `${object.namespace}/${object.name}`,
      object.ready ? "yes" : "no",
      object.reason,
      object.message,
    ]);
    lines.push(table(["KIND", "NAME", "READY", "REASON", "MESSAGE"], rows));
  }
  if (!all) {
    const ready = status.objects.filter((object) => object.ready).length;
    lines.push(`${status.objects.length} objects, ${ready} ready.`);
  }
  if (status.problems.length > 0)
    lines.push("", "Not in use as written:", ...status.problems.map((text) => `  ${text}`));
  for (const envoy of status.envoys) {
    for (const nack of envoy.nacks)
      lines.push("", `Envoy ${envoy.node} refused a ${nack.type}: ${nack.message}`);
  }
  if (status.audit !== undefined) lines.push("", renderAudit(status.audit));
  if (status.reason !== undefined) lines.push("", `Not ready: ${status.reason}.`);
  return lines.join("\n");
}

const AUDIT: Readonly<Record<AuditState, string>> = {
  ok: "ok",
  low: "LOW on space, refusals are only counted",
  full: "FULL, only space for calls under way is left: free space, or archive segments",
  failing: "FAILING, it cannot be written: see the gateway's log for the reason",
};

function renderAudit({ state, freeBytes, chainsBytes, refusalsLeftOut }: AuditStatus): string {
  const parts = [
    AUDIT[state],
    ...(freeBytes === undefined ? [] : [`${formatSize(freeBytes)} free`]),
    ...(chainsBytes === undefined ? [] : [`${formatSize(chainsBytes)} used`]),
  ];
  const counts = Object.entries(refusalsLeftOut).filter(([, count]) => count > 0);
  if (counts.length > 0) {
    const reasons = counts.map(([reason, count]) => `${reason} ${count}`).join(", ");
    parts.push(`refusals without a record of their own: ${reasons}`);
  }
  return `Audit chain: ${parts.join("; ")}.`;
}
