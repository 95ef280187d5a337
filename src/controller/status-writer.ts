/** Writes the statuses that are the controller's to judge, and an event when a reason changes. */
import { isDeepStrictEqual } from "node:util";
import type { KubeClient } from "../kubernetes/client.ts";
import { isNotFound } from "../kubernetes/connection.ts";
import type { EventRecorder } from "../kubernetes/events.ts";
import type { KubeObject } from "../kubernetes/objects.ts";
import type { TimeSource } from "../platform/clock.ts";
import { type PublishedCondition, type Reason, withTransitionTimes } from "../policy/status.ts";
import { KINDS, type ResourceKind } from "../resources/kinds.ts";
import { kubeKindOf } from "../sources/kubernetes/own-informers.ts";

/** What is written besides the condition Ready. */
export interface StatusFields {
  readonly ready: boolean;
  readonly reason: Reason;
  readonly message: string;
  /** Further fields of the kind's status; undefined ones are removed. */
  readonly fields?: Readonly<Record<string, string | undefined>>;
}

export class StatusWriter {
  readonly #client: KubeClient;
  readonly #events: EventRecorder;
  readonly #clock: TimeSource;

  constructor(client: KubeClient, events: EventRecorder, clock: TimeSource) {
    this.#client = client;
    this.#events = events;
    this.#clock = clock;
  }

  /**
   * Writes what differs from the object.
   * @returns whether a request was made
   * @throws ApiError
   */
  async write(object: KubeObject, { ready, reason, message, fields = {} }: StatusFields) {
    const found = (object["status"] ?? {}) as Readonly<Record<string, unknown>>;
    const { name, namespace = "", generation } = object.metadata;
    const kind = object.kind as ResourceKind;
    const known = ((found["conditions"] ?? []) as readonly PublishedCondition[]).filter(
      ({ type }) => type === "Ready",
    );
    const observed = generation === undefined ? {} : { observedGeneration: generation };
    const judged = { kind, namespace, name, ready, reason, message };
    const condition = {
      type: "Ready",
      status: ready ? "True" : "False",
      reason,
      message,
      ...observed,
    } as const;
    const [published] = withTransitionTimes(
      [{ ...judged, conditions: [condition] }],
      [{ ...judged, conditions: known }],
      this.#clock.now(),
    );
    const status: Record<string, unknown> = {
      ready,
      reason,
      message,
      ...observed,
      conditions: published?.conditions,
      ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)),
    };
    const isSame =
      Object.entries({ ...status, conditions: known }).every(([field, value]) =>
        isDeepStrictEqual(found[field] ?? undefined, field === "conditions" ? found[field] : value),
      ) &&
      isDeepStrictEqual(known, published?.conditions) &&
      Object.keys(fields).every((field) => fields[field] !== undefined || !(field in found));
    if (isSame) return false;
    const { apiVersion } = KINDS[kind];
    try {
      await this.#client.apply(
        kubeKindOf(kind),
        { apiVersion, kind, metadata: { name, namespace }, status },
        "status",
      );
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
    if (found["reason"] !== reason)
      await this.#events.record(object, {
        type: ready || reason === "PodsNotReady" ? "Normal" : "Warning",
        reason,
        message: message === "" ? `${kind} ${name} is ready` : message,
      });
    return true;
  }
}
