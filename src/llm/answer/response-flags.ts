/** Envoy's response flags: the reason why an attempt has no answer from the provider. */

/** Short names of response flags in Envoy's local replies, by the names in its access log. */
const LOCAL_FLAGS: Readonly<Record<string, string>> = {
  UT: "upstreamRequestTimeout",
  UC: "upstreamConnectionTermination",
  UR: "upstreamRemoteReset",
  SI: "streamIdleTimeout",
  UMSDR: "upstreamMaxStreamDurationReached",
  UPE: "upstreamProtocolError",
};

/** @returns names as in reports of failed attempts; `local` itself if it contains no known flag */
export function localReplyFlags(local: string): string {
  const [flags = ""] = local.split(" ", 1);
  const names = flags.split(",").flatMap((flag) => LOCAL_FLAGS[flag] ?? []);
  return names.length > 0 ? names.join(",") : `local ${flags}`;
}

/**
 * Flags of attempts that reached their provider but have no answer: a timeout, or a broken
 * connection (envoy/data/accesslog/v3/accesslog.proto, `ResponseFlags`).
 */
const SENT_FLAGS: readonly string[] = Object.values(LOCAL_FLAGS);

/** Returns whether a provider may have continued a failed attempt. @param flags by long name */
export function mayHaveRun({
  status,
  flags,
}: {
  readonly status: number;
  readonly flags: string;
}): boolean {
  if (flags.split(",").some((flag) => SENT_FLAGS.includes(flag))) return true;
  // Without a report this is unknown.
  return status === 0 && flags === "";
}
