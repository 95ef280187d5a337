/** Writes the statuses that are the controller's to judge, and an event when a reason changes. */
import { isDeepStrictEqual } from "node:util";
import type { KubeClient } from "../kubernetes/client.ts";
import { isNotFound } from "../kubernetes/connection.ts";
import type { EventRecorder } from "../kubernetes/events.ts";
import type { KubeObject } from "../kubernetes/objects.ts";
import type { TimeSource } from "../platform/clock.ts";
import {
  boundedMessage,
  type PublishedCondition,
  type Reason,
  withTransitionTimes,
} from "../policy/status.ts";
import { KINDS, type ResourceKind } from "../resources/kinds.ts";
import { kubeKindOf } from "../sources/kubernetes/own-informers.ts";

/** The values that are written. */
export interface StatusFields {
  readonly ready: boolean;
  readonly reason: Reason;
  readonly message: string;
  /** `metadata.generation` of the version that was judged, which may not be the newest. */
  readonly observedGeneration?: number | undefined;
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
   * Writes the status if it differs from the object's.
   * @returns whether it was written
   * @throws ApiError
   */
  async write(object: KubeObject, fullStatus: StatusFields): Promise<boolean> {
    const given = { ...fullStatus, message: boundedMessage(fullStatus.message) };
    const { ready, reason, message, fields = {} } = given;
    const found = (object["status"] ?? {}) as Readonly<Record<string, unknown>>;
    const { name, namespace = "" } = object.metadata;
    const kind = object.kind as ResourceKind;
    const status = { ...statusOf(object, given, this.#clock.now()), ...fields };
    const isWritten = Object.entries(status).every(([field, value]) =>
      isDeepStrictEqual(field === "conditions" ? readyOf(found) : found[field], value),
    );
    if (isWritten) return false;
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
    // That a new object is in use needs no event.
    const isNews = found["reason"] === undefined ? !ready : found["reason"] !== reason;
    if (isNews)
      await this.#events.record(object, {
        type: ready || reason === "PodsNotReady" ? "Normal" : "Warning",
        reason,
        message: message === "" ? `${kind} ${name} is ready` : message,
      });
    return true;
  }
}

/** The fields that every kind's status has. */
function statusOf(
  object: KubeObject,
  { ready, reason, message, observedGeneration }: StatusFields,
  now: number,
): Readonly<Record<string, unknown>> {
  const { name, namespace = "" } = object.metadata;
  const judged = { kind: object.kind as ResourceKind, namespace, name, ready, reason, message };
  const observed = observedGeneration === undefined ? {} : { observedGeneration };
  const condition = {
    type: "Ready",
    status: ready ? "True" : "False",
    reason,
    message,
    ...observed,
  } as const;
  const known = readyOf((object["status"] ?? {}) as Readonly<Record<string, unknown>>);
  const [published] = withTransitionTimes(
    [{ ...judged, conditions: [condition] }],
    [{ ...judged, conditions: known }],
    now,
  );
  return { ready, reason, message, ...observed, conditions: published?.conditions };
}

/** The condition Ready of a status; others may have added conditions of their own. */
function readyOf(status: Readonly<Record<string, unknown>>): readonly PublishedCondition[] {
  const conditions = (status["conditions"] ?? []) as readonly PublishedCondition[];
  return conditions.filter(({ type }) => type === "Ready");
}
