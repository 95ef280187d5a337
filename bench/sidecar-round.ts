/** One round of the benchmark of the sidecar. */
import type { LoadResult } from "./load.ts";

export type SidecarPhase = "low" | "steady" | "max" | "fresh" | "body";

/** Results by phase, then by target. */
export type SidecarRound = Readonly<Record<SidecarPhase, Readonly<Record<string, LoadResult>>>>;
