/** Content of `svc status`. */
import type { LeftOutReason } from "../audit/refusals/omissions.ts";
import type { AuditState } from "../audit/sink.ts";
import type { SpaceStatus } from "../audit/writer/volume.ts";
import type { ChecksByLabel } from "./guard-counts.ts";
import type { PublishedStatus } from "../policy/status.ts";
import type { NodeStatus } from "../envoy/xds/ads.ts";

export interface GatewayStatus {
  readonly ready: boolean;
  /** Reason; undefined if ready. */
  readonly reason: string | undefined;
  readonly policyVersion: string;
  /** Calls of models, and requests to MCP servers, that are under way. */
  readonly activeCalls: number;
  readonly objects: readonly PublishedStatus[];
  /** Descriptions of the parts of the resource folder that could not be read. */
  readonly problems: readonly string[];
  readonly envoys: readonly NodeStatus[];
  /**
   * Checks of guards, by `<namespace>/<name>` of the GuardBinding; undefined for a gateway of an
   * earlier version.
   */
  readonly guards?: Readonly<Record<string, ChecksByLabel>>;
  /** State of the gateway's audit chain; undefined if there is none. */
  readonly audit?: AuditStatus | undefined;
}

export interface AuditStatus extends SpaceStatus {
  readonly state: AuditState;
  /** Refusals without a record of their own since the gateway started, by reason. */
  readonly refusalsLeftOut: Readonly<Record<LeftOutReason, number>>;
}
