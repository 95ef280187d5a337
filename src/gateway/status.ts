/** What `svc status` shows. */
import type { LeftOutReason } from "../audit/omissions.ts";
import type { AuditState } from "../audit/sink.ts";
import type { SpaceStatus } from "../audit/volume.ts";
import type { ObjectStatus } from "../policy/status.ts";
import type { NodeStatus } from "../envoy/xds/ads.ts";

export interface GatewayStatus {
  readonly ready: boolean;
  /** Why not; undefined when ready. */
  readonly reason: string | undefined;
  readonly policyVersion: string;
  readonly activeCalls: number;
  readonly objects: readonly ObjectStatus[];
  /** What of the resource folder could not be read, in words. */
  readonly problems: readonly string[];
  readonly envoys: readonly NodeStatus[];
  /** Of the gateway's audit chain; undefined where there is none. */
  readonly audit?: AuditStatus | undefined;
}

export interface AuditStatus extends SpaceStatus {
  readonly state: AuditState;
  /** Refusals without a record of their own since the gateway started, by reason. */
  readonly refusalsLeftOut: Readonly<Record<LeftOutReason, number>>;
}
