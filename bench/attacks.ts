/** The kinds of attackers, and their options. */

/** Descriptions for the report. */
export const ATTACKS = {
  large: "bodies of 31 MiB, one after another on 8 connections",
  translated: "bodies of 8 MiB that are translated, on 4 connections",
  deep: "29 MiB of opening brackets, on 8 connections",
  wide: "bodies of 400,000 values or members, on 8 connections",
  slow: "2,000 connections whose headers and bodies trickle",
  many: "small calls as fast as they are answered, on 256 connections",
  unfinished: "500 uploads of 31 MiB that are begun and never ended",
  refused: "calls of an agent that is over its limit, on 128 connections",
  unknown: "calls without a known key, on 128 connections",
  names: "calls for models never heard of, on 64 connections",
  sidecar: "requests that the sidecar denies, on 64 connections of an agent",
  leaving: "calls that are left at once, on 128 connections",
} as const;
export type Attack = keyof typeof ATTACKS;

export interface AttackJob {
  readonly kind: Attack;
  readonly port: number;
  /** Token of an agent without limits. */
  readonly key: string;
  /** Token of an agent with one request per minute. */
  readonly limitedKey: string;
  readonly model: string;
  /** A model that speaks another dialect. */
  readonly foreignModel: string;
  /** Port of a sidecar whose audit chain is beside the gateway's. */
  readonly sidecar: { readonly port: number; readonly caFile: string };
}
