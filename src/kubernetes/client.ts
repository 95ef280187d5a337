/** Operations on objects of any kind. */
import type { ApiConnection } from "./connection.ts";
import { isNotFound } from "./connection.ts";
import { collectionPath, type KubeKind, type KubeObject, objectPath } from "./objects.ts";

export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

export interface ObjectList {
  readonly items: readonly KubeObject[];
  readonly resourceVersion: string;
}

export interface Selector {
  readonly fieldSelector?: string | undefined;
  readonly labelSelector?: string | undefined;
}

/** Objects of one answer of a list. */
const PAGE = 500;

export class KubeClient {
  readonly connection: ApiConnection;
  /** Name of this program in `metadata.managedFields`. */
  readonly #fieldManager: string;

  constructor(connection: ApiConnection, fieldManager: string) {
    this.connection = connection;
    this.#fieldManager = fieldManager;
  }

  /** @returns undefined if there is no such object. @throws ApiError */
  async get(
    kind: KubeKind,
    name: ObjectName,
    signal?: AbortSignal,
  ): Promise<KubeObject | undefined> {
    try {
      return (await this.connection.request(objectPath(kind, name), { signal })) as KubeObject;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /**
   * Lists all objects of a kind, in one namespace or in all, page by page. Each page has the
   * version of the whole list. @throws ApiError, with status 410 if the list took too long
   */
  async *pages(
    kind: KubeKind,
    namespace?: string,
    selector: Selector = {},
    signal?: AbortSignal,
  ): AsyncGenerator<ObjectList> {
    let next: string | undefined;
    do {
      const page = (await this.connection.request(collectionPath(kind, namespace), {
        query: { ...selector, limit: String(PAGE), continue: next },
        signal,
      })) as {
        readonly items?: readonly KubeObject[];
        readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
      };
      const { apiVersion, kind: name } = kind;
      // The items of a list of a core kind leave out what its kind says. In the place that a watch
      // has it, so that both have the same text.
      const items = (page.items ?? []).map((item) =>
        (item.kind as string | undefined) === undefined
          ? Object.assign({ kind: name, apiVersion }, item)
          : item,
      );
      yield { items, resourceVersion: page.metadata?.resourceVersion ?? "" };
      next = page.metadata?.continue;
    } while (next !== undefined && next !== "");
  }

  /** Lists all objects of a kind, in one namespace or in all. @throws ApiError */
  async list(kind: KubeKind, namespace?: string, selector: Selector = {}): Promise<ObjectList> {
    const items: KubeObject[] = [];
    let resourceVersion = "";
    for await (const page of this.pages(kind, namespace, selector)) {
      for (const item of page.items) items.push(item);
      ({ resourceVersion } = page);
    }
    return { items, resourceVersion };
  }

  /** @throws ApiError, with status 409 if it exists */
  async create(kind: KubeKind, object: KubeObject, signal?: AbortSignal): Promise<KubeObject> {
    return (await this.connection.request(collectionPath(kind, object.metadata.namespace), {
      method: "POST",
      query: { fieldManager: this.#fieldManager },
      body: object,
      signal,
    })) as KubeObject;
  }

  /**
   * Replaces an object. With its `metadata.resourceVersion` it fails with 409 if the object has
   * changed since.
   * @throws ApiError
   */
  async replace(kind: KubeKind, object: KubeObject, signal?: AbortSignal): Promise<KubeObject> {
    return (await this.connection.request(objectPath(kind, namesOf(object)), {
      method: "PUT",
      query: { fieldManager: this.#fieldManager },
      body: object,
      signal,
    })) as KubeObject;
  }

  /**
   * Server-side apply: the given fields are this program's, and fields that it applied before and
   * that are not given any more are removed.
   * https://kubernetes.io/docs/reference/using-api/server-side-apply/
   * @throws ApiError
   */
  async apply(
    kind: KubeKind,
    object: KubeObject,
    subresource?: "status",
    fieldManager = this.#fieldManager,
  ): Promise<KubeObject> {
    const path = objectPath(kind, namesOf(object));
    return (await this.connection.request(subresource === undefined ? path : `${path}/status`, {
      method: "PATCH",
      query: { fieldManager, force: "true" },
      body: object,
      contentType: "application/apply-patch+yaml",
    })) as KubeObject;
  }

  /** JSON merge patch (RFC 7396). @throws ApiError */
  async merge(kind: KubeKind, name: ObjectName, patch: unknown): Promise<KubeObject> {
    return (await this.connection.request(objectPath(kind, name), {
      method: "PATCH",
      query: { fieldManager: this.#fieldManager },
      body: patch,
      contentType: "application/merge-patch+json",
    })) as KubeObject;
  }

  /**
   * Deletes an object, and in the background what it owns. An object that is gone is no error.
   * @param uid only the object with this UID is deleted
   * @throws ApiError
   */
  async delete(kind: KubeKind, name: ObjectName, uid?: string): Promise<void> {
    try {
      await this.connection.request(objectPath(kind, name), {
        method: "DELETE",
        body: {
          propagationPolicy: "Background",
          ...(uid === undefined ? {} : { preconditions: { uid } }),
        },
      });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}

function namesOf({ metadata }: KubeObject): ObjectName {
  return { namespace: metadata.namespace ?? "", name: metadata.name };
}
