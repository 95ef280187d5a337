/**
 * The declaration of a kind of resource. A kind is one file of this folder that declares it, and
 * one line in `kinds.ts`: parsing, the resource set, the CRD, the field reference, the control API
 * and the command line derive from the declaration.
 */
import type { z } from "zod";
import type { Column } from "./columns.ts";
import type { Metadata, ResourceBase, ResourceReader, UnsupportedField } from "./metadata.ts";
import { RESOURCE_READERS } from "./metadata.ts";
import type { ObjectUsage, UsageCounter } from "./usage.ts";

/** Names of a kind on the command line. Without hyphens they are the names of its CRD. */
export interface KindNames {
  /** Name in the output of `-o name`, e.g. `model-provider`. */
  readonly singular: string;
  /** Name in help and tables, e.g. `model-providers`. */
  readonly plural: string;
  /** Abbreviation, e.g. `mp`. */
  readonly short?: string;
  /** Further names, which only commands accept. */
  readonly others?: readonly string[];
}

/** A column of `kubectl get`: an entry of a CRD's `additionalPrinterColumns`. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: "boolean" | "date" | "integer" | "number" | "string";
  readonly jsonPath: string;
  /** Columns above 0 are only shown with `-o wide`. */
  readonly priority?: number;
}

/** The content of an object that the control API shows. */
export interface ContentView {
  /** The spec in force, defaults included. */
  readonly spec?: Readonly<Record<string, unknown>>;
  /** Names of a Secret's values. */
  readonly keys?: readonly string[];
  /** Values of a ConfigMap. */
  readonly data?: Readonly<Record<string, string>>;
}

/** The usage that a kind's status shows. */
export interface KindUsage<Own> {
  /**
   * Returns an object's counter; undefined if it has none.
   * @param resource the object in use; undefined if no version of it is
   */
  readonly counter: (resource: Own | undefined) => UsageCounter | undefined;
  /** The fields that are shown. */
  readonly fields: readonly (keyof ObjectUsage)[];
}

/** The result of parsing one object of a kind. */
export type KindResult<Own> =
  | { readonly kind: "ok"; readonly resource: Own }
  | { readonly kind: "invalid"; readonly issues: readonly z.core.$ZodIssue[] };

/** A parsed resource of any kind. */
type AnyResource = ResourceBase & { readonly kind: string };

/** A kind of resource; `Own` is the type of its parsed objects. */
export interface Kind<Own extends AnyResource, Collection extends string = string> {
  readonly kind: Own["kind"];
  readonly apiVersion: string;
  /** Key of the kind's map in the resource set, e.g. `modelProviders`. */
  readonly collection: Collection;
  readonly names: KindNames;
  /** Text of the kind's section in `docs/resources.md`. */
  readonly reference: string;
  /** Schema of its objects as they are written. */
  readonly schema: z.ZodType;
  /** Processes that read its objects; others refuse them as not supported yet. */
  readonly readers: readonly ResourceReader[];
  /** Fields that are parsed, and refused if they have an effect. */
  readonly unsupported: readonly UnsupportedField[];
  /** Its CustomResourceDefinition; undefined for a kind of Kubernetes itself. */
  readonly crd: { readonly columns: readonly PrinterColumn[] } | undefined;
  /** Columns of `svc get`. */
  readonly columns: readonly Column[];
  /** Usage in its status; undefined for none. */
  readonly usage: KindUsage<Own> | undefined;
  /** Neither its content nor a hash of it is ever shown. */
  readonly confidential: boolean;
  /** Returns the content that is shown. */
  readonly view: (resource: Own) => ContentView;
  /**
   * Parses one object.
   * @param baseOf returns the common fields of the object with the given metadata
   */
  readonly parse: (value: unknown, baseOf: (metadata: Metadata) => ResourceBase) => KindResult<Own>;
}

/** The declaration of a kind: what {@link defineKind} makes a {@link Kind} of. */
export interface KindDeclaration<
  Own extends AnyResource,
  Collection extends string,
  Parsed extends { readonly metadata: Metadata },
> extends Pick<
  Kind<Own, Collection>,
  "kind" | "apiVersion" | "collection" | "names" | "reference" | "columns" | "view"
> {
  readonly schema: z.ZodType<Parsed>;
  /** @defaultValue all */
  readonly readers?: readonly ResourceReader[];
  readonly unsupported?: readonly UnsupportedField[];
  readonly crd?: Kind<Own>["crd"];
  readonly usage?: KindUsage<Own>;
  readonly confidential?: boolean;
  /** Builds the resource of a parsed object. */
  readonly build: (parsed: Parsed, base: ResourceBase) => Own;
}

/** Defines a kind. The types of its objects are those of its schema and of `build`. */
export function defineKind<
  Own extends AnyResource,
  const Collection extends string,
  Parsed extends { readonly metadata: Metadata },
>(declaration: KindDeclaration<Own, Collection, Parsed>): Kind<Own, Collection> {
  const { build, schema, ...rest } = declaration;
  return {
    readers: RESOURCE_READERS,
    unsupported: [],
    crd: undefined,
    usage: undefined,
    confidential: false,
    ...rest,
    schema,
    parse: (value, baseOf) => {
      const parsed = schema.safeParse(value);
      return parsed.success
        ? { kind: "ok", resource: build(parsed.data, baseOf(parsed.data.metadata)) }
        : { kind: "invalid", issues: parsed.error.issues };
    },
  };
}
