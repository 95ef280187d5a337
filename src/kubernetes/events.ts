/**
 * Events of objects, which `kubectl describe` shows. Best effort: an event that cannot be written
 * is lost. https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
 */
import type { TimeSource } from "../platform/clock.ts";
import type { KubeClient } from "./client.ts";
import { CORE, type KubeObject } from "./objects.ts";

/** Longest message that the API server accepts. */
const MAX_MESSAGE = 1_024;

export interface EventText {
  readonly type: "Normal" | "Warning";
  /** A constant in CamelCase. */
  readonly reason: string;
  readonly message: string;
}

export class EventRecorder {
  readonly #client: KubeClient;
  readonly #component: string;
  readonly #clock: TimeSource;

  /** @param component name of this program */
  constructor(client: KubeClient, component: string, clock: TimeSource) {
    this.#client = client;
    this.#component = component;
    this.#clock = clock;
  }

  async record(about: KubeObject, { type, reason, message }: EventText): Promise<void> {
    const { name, namespace = "default", uid, resourceVersion } = about.metadata;
    const now = new Date(this.#clock.now()).toISOString().replace(/\.\d+Z$/, "Z");
    const id = this.#clock.now().toString(16);
    const event = {
      apiVersion: CORE.event.apiVersion,
      kind: CORE.event.kind,
      metadata: { name: `${name.slice(0, 200)}.${id}`, namespace },
      involvedObject: {
        apiVersion: about.apiVersion,
        kind: about.kind,
        name,
        namespace,
        uid,
        resourceVersion,
      },
      type,
      reason,
      message: message.slice(0, MAX_MESSAGE),
      source: { component: this.#component },
      reportingComponent: this.#component,
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    };
    await this.#client.create(CORE.event, event).catch(() => undefined);
  }
}
