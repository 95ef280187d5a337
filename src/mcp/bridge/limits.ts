/** Bounds of the bridge. Tests use smaller ones. */
import type { JsonLimits } from "../../platform/json/scan.ts";

const MIB = 1024 * 1024;

export interface BridgeLimits {
  /** Frame of a client, in bytes. */
  readonly clientFrameBytes: number;
  /** Message of a server, in bytes. */
  readonly serverMessageBytes: number;
  /** Sessions of one owner, on each side. */
  readonly sessionsPerOwner: number;
  /** Sessions of each side. */
  readonly sessions: number;
  /** Frames of one client that are under way. */
  readonly framesPerSession: number;
  /** Their bytes. */
  readonly frameBytesPerSession: number;
  /** Messages of a server that wait for a stream to its client. */
  readonly queuedMessages: number;
  /** Their bytes. */
  readonly queuedBytes: number;
  /** Bytes that wait for one reader, above which its stream is cut. */
  readonly unreadBytes: number;
}

export const BRIDGE_LIMITS: BridgeLimits = {
  clientFrameBytes: MIB,
  serverMessageBytes: 32 * MIB,
  sessionsPerOwner: 64,
  sessions: 4_096,
  framesPerSession: 64,
  frameBytesPerSession: 8 * MIB,
  queuedMessages: 256,
  queuedBytes: 4 * MIB,
  unreadBytes: 64 * MIB,
};

/** Times in milliseconds. */
export interface BridgeTimes {
  /** Interval of the comments that keep a stream open. */
  readonly keepAlive: number;
  /** Longest wait for a reader that does not read. */
  readonly stalledReader: number;
  /** Longest wait for the answer to `initialize`. */
  readonly initialize: number;
  /** Longest wait for an upstream's `endpoint` event. */
  readonly endpoint: number;
  /** Longest wait for the answer to a frame that has no requests. */
  readonly oneWay: number;
  /** Longest wait until an upstream of the old transport has accepted a frame with requests. */
  readonly accepted: number;
  /** Longest wait for the answer to DELETE. */
  readonly goodbye: number;
  /** First and longest wait before a stream is opened again. */
  readonly firstRetry: number;
  readonly longestRetry: number;
  /** Time after which a session without an open stream ends. */
  readonly idle: number;
  /** Longest wait for another process. */
  readonly bus: number;
}

export const BRIDGE_TIMES: BridgeTimes = {
  keepAlive: 25_000,
  stalledReader: 60_000,
  initialize: 60_000,
  endpoint: 15_000,
  oneWay: 30_000,
  accepted: 300_000,
  goodbye: 5_000,
  firstRetry: 1_000,
  longestRetry: 30_000,
  idle: 1_800_000,
  bus: 5_000,
};

/** Results of tools are larger than the prompts for which the scanner has its own limits. */
export const MESSAGE_JSON: JsonLimits = { depth: 128, values: 2_000_000, members: 256 };
