/** Envoy's response flags: why an attempt brought no answer of the provider. */

/** Short names of response flags in Envoy's local replies, by the names in its access log. */
const LOCAL_FLAGS: Readonly<Record<string, string>> = {
  UT: "upstreamRequestTimeout",
  UC: "upstreamConnectionTermination",
  UR: "upstreamRemoteReset",
  SI: "streamIdleTimeout",
  UMSDR: "upstreamMaxStreamDurationReached",
  UPE: "upstreamProtocolError",
};

/** @returns names as in reports of failed attempts; `local` itself where it has no such flag */
export function localReplyFlags(local: string): string {
  const [flags = ""] = local.split(" ", 1);
  const names = flags.split(",").flatMap((flag) => LOCAL_FLAGS[flag] ?? []);
  return names.length > 0 ? names.join(",") : `local ${flags}`;
}

/**
 * Flags of attempts that reached their provider and have no answer: a timeout, or a connection that
 * broke (envoy/data/accesslog/v3/accesslog.proto, `ResponseFlags`).
 */
const SENT_FLAGS: readonly string[] = Object.values(LOCAL_FLAGS);

/** Whether a provider may have gone on with an attempt that failed. @param flags by long name */
export function mayHaveRun({
  status,
  flags,
}: {
  readonly status: number;
  readonly flags: string;
}): boolean {
  if (flags.split(",").some((flag) => SENT_FLAGS.includes(flag))) return true;
  // Without a report nobody knows.
  return status === 0 && flags === "";
}
