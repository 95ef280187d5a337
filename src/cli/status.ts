/** What `svc up` and `svc status` print of the gateway's state. */
import type { GatewayStatus } from "../gateway/status.ts";
import { table } from "./table.ts";

/** Beyond this many objects only those that want attention are listed. */
const LIST_ALL_UP_TO = 20;

export function renderStatus(status: GatewayStatus): string {
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
  if (status.reason !== undefined) lines.push("", `Not ready: ${status.reason}.`);
  return lines.join("\n");
}
