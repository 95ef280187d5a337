/**
 * The token of an agent's webhook: a Secret that is made once and never changed, so that its URL
 * stays; deleting it makes a new one.
 */
import { randomBytes } from "node:crypto";
import type { KubeClient, ObjectName } from "../kubernetes/client.ts";
import { isConflict } from "../kubernetes/connection.ts";
import { CORE, type KubeObject, type OwnerReference } from "../kubernetes/objects.ts";
import { labelsOf, namesOf } from "./names.ts";

/** Bytes of a token: 256 bits. */
const TOKEN_BYTES = 32;

/** Returns the token of a Secret; undefined if it has none. */
export function webhookTokenOf(secret: KubeObject | undefined): string | undefined {
  const { token = "" } = (secret?.["data"] ?? {}) as Readonly<Record<string, string>>;
  const text = Buffer.from(token, "base64").toString("utf8");
  return /^[A-Za-z0-9_-]{43}$/.test(text) ? text : undefined;
}

/**
 * Makes the Secret, or gives one that has lost its token a new one.
 * @param found the Secret as it is
 * @throws ApiError
 */
export async function makeWebhookToken(
  client: KubeClient,
  { namespace, name }: ObjectName,
  owner: OwnerReference,
  found: KubeObject | undefined,
): Promise<void> {
  const token = Buffer.from(randomBytes(TOKEN_BYTES).toString("base64url")).toString("base64");
  const names = { namespace, name: namesOf(name).webhook };
  try {
    // Never by apply: two writers must not give the agent two tokens.
    if (found === undefined)
      await client.create(CORE.secret, {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { ...names, labels: labelsOf(name), ownerReferences: [owner] },
        type: "Opaque",
        data: { token },
      });
    else
      await client.merge(CORE.secret, names, {
        metadata: { resourceVersion: found.metadata.resourceVersion },
        data: { token },
      });
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
}

/** `{base_url}/webhooks/<namespace>/<agent>/<token>` */
export function webhookUrl(
  baseUrl: string,
  { namespace, name }: ObjectName,
  token: string,
): string {
  return `${baseUrl.replace(/(?<!\/)\/+$/, "")}/webhooks/${namespace}/${name}/${token}`;
}
