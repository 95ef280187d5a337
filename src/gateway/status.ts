/** What `svc status` shows. */
import type { ObjectStatus } from "../policy/status.ts";
import type { NodeStatus } from "../xds/ads.ts";

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
}
