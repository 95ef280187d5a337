/**
 * Secret: the core Kubernetes kind (`v1`), as far as this service uses it. Values leave this file
 * only inside {@link Secret}, or as the name of an environment variable.
 */
import * as z from "zod";
import { Secret } from "../platform/secret.ts";
import { MESSAGE, NAME, NONE, READY, REASON, some } from "./columns.ts";
import { defineKind } from "./kind.ts";
import type { ResourceBase } from "./metadata.ts";
import { dataKeySchema, secretMetadataSchema } from "./metadata.ts";

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Base64 of RFC 4648 with padding, line breaks allowed as Kubernetes does. */
const base64 = z
  .string()
  .refine(
    (text) => BASE64.test(text.replaceAll(/\s/g, "")),
    "must be base64; plain text belongs in stringData",
  );

export const secretSchema = z.strictObject({
  apiVersion: z.literal("v1"),
  kind: z.literal("Secret"),
  metadata: secretMetadataSchema,
  type: z.string().optional().describe("As in Kubernetes; ignored."),
  immutable: z.boolean().optional().describe("As in Kubernetes; ignored."),
  data: z.record(dataKeySchema, base64).optional().describe("Values in base64, used unchanged."),
  stringData: z
    .record(dataKeySchema, z.string())
    .optional()
    .describe(
      "Values as text; they override data. A value that is wholly `${NAME}` or " +
        "`${NAME:-default}` comes from the environment.",
    ),
});

/** Source of a value of a Secret. */
export type SecretSource =
  | { readonly kind: "value"; readonly value: Secret }
  /** An environment variable, read when the policy is compiled; unset or empty means `fallback`. */
  | { readonly kind: "env"; readonly variable: string; readonly fallback: Secret | undefined };

export interface SecretResource extends ResourceBase {
  readonly kind: "Secret";
  readonly values: ReadonlyMap<string, SecretSource>;
}

const ENV_REFERENCE = /^\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?\}$/;

/**
 * Values of a parsed Secret. Only `stringData` may name an environment variable: it exists only in
 * files, so a user who can write a Secret in a cluster cannot read the gateway's environment.
 */
export function secretValues(
  parsed: z.output<typeof secretSchema>,
): ReadonlyMap<string, SecretSource> {
  const values = new Map<string, SecretSource>();
  for (const [name, value] of Object.entries(parsed.data ?? {})) {
    values.set(name, {
      kind: "value",
      value: new Secret(Buffer.from(value, "base64").toString("utf8")),
    });
  }
  for (const [name, value] of Object.entries(parsed.stringData ?? {})) {
    const reference = ENV_REFERENCE.exec(value);
    values.set(
      name,
      reference === null
        ? { kind: "value", value: new Secret(value) }
        : {
            kind: "env",
            variable: reference[1] ?? "",
            fallback: reference[2] === undefined ? undefined : new Secret(reference[2]),
          },
    );
  }
  return values;
}

export const secretKind = defineKind({
  kind: "Secret",
  apiVersion: "v1",
  collection: "secrets",
  names: { singular: "secret", plural: "secrets" },
  reference:
    "The core Kubernetes kind, `apiVersion: v1`. Values are never shown. Only `stringData` " +
    "may name environment variables: it exists only in files, so a user who writes a " +
    "Secret in a cluster cannot read the gateway's environment.",
  schema: secretSchema,
  confidential: true,
  build: (parsed, base): SecretResource => ({
    kind: "Secret",
    ...base,
    values: secretValues(parsed),
  }),
  view: ({ values }) => ({ keys: [...values.keys()] }),
  columns: [
    NAME,
    { title: "KEYS", cell: ({ keys }) => some(keys ?? [], NONE) },
    READY,
    REASON,
    MESSAGE,
  ],
});
