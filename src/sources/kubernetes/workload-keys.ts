/**
 * The Secret with the keys from which workload tokens are derived: tokens are made with `current`,
 * and those of `previous` stay valid while it exists.
 */
import type { KubeObject } from "../../kubernetes/objects.ts";

/** Length of a key, in bytes. */
export const WORKLOAD_KEY_BYTES = 32;

/** @returns undefined if the Secret has no usable `current` */
export function workloadKeysOf(secret: KubeObject): readonly Uint8Array[] | undefined {
  const data = (secret["data"] ?? {}) as Readonly<Record<string, string>>;
  const keys = [data["current"], data["previous"]].map((text) => Buffer.from(text ?? "", "base64"));
  const [current, previous] = keys as [Buffer, Buffer];
  if (current.length < WORKLOAD_KEY_BYTES) return undefined;
  return previous.length < WORKLOAD_KEY_BYTES ? [current] : [current, previous];
}
