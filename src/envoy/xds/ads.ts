/**
 * The aggregated discovery service, incremental variant: sends the current snapshot to every
 * connected Envoy, in an order that leaves no dangling reference, and reports rejections by Envoy.
 */
import type * as grpc from "@grpc/grpc-js";
import { create, toBinary } from "@bufbuild/protobuf";
import { AnySchema } from "@bufbuild/protobuf/wkt";
import type { Clock } from "../../platform/clock.ts";
import type { EnvoyAnswer } from "../../policy/status.ts";
import { bytesMethod } from "./bytes-service.ts";
import type { ProtoRegistry } from "../protobuf/registry.ts";
import {
  EMPTY_XDS_SNAPSHOT,
  PUSH_ORDER,
  type ResourceType,
  TypeUrl,
  versionOf,
  type XdsSnapshot,
} from "./snapshot.ts";
import { type Delta, type Nack, Subscription } from "./subscription.ts";

const REQUEST = "envoy.service.discovery.v3.DeltaDiscoveryRequest";
const RESPONSE = "envoy.service.discovery.v3.DeltaDiscoveryResponse";

/**
 * DeltaDiscoveryRequest as reflection gives it; source: envoy/service/discovery/v3/discovery.proto.
 */
interface DeltaRequest {
  readonly node?: { readonly id: string };
  readonly typeUrl: string;
  readonly resourceNamesSubscribe: readonly string[];
  readonly resourceNamesUnsubscribe: readonly string[];
  readonly initialResourceVersions: Readonly<Record<string, string>>;
  readonly responseNonce: string;
  readonly errorDetail?: { readonly message: string };
}

export interface TypeStatus {
  readonly type: ResourceType;
  /** Version of the current snapshot's resources of this type; equal ones have equal content. */
  readonly version: string;
  /** Number of the current snapshot's resources of this type. */
  readonly resources: number;
  /** The node's answer for them. */
  readonly state: "acknowledged" | "rejected" | "pending";
}

export interface NodeStatus {
  readonly node: string;
  /** The whole current snapshot is acknowledged (or rejected). */
  readonly inSync: boolean;
  readonly nacks: readonly (Nack & { readonly type: ResourceType })[];
  readonly types: readonly TypeStatus[];
}

export interface AdsOptions {
  readonly registry: ProtoRegistry;
  readonly onConnect?: (node: string) => void;
  readonly onNack: (node: string, type: ResourceType, nack: Nack) => void;
  /** Called whenever an Envoy has sent something or disconnected: answers may have changed. */
  readonly onProgress?: () => void;
}

type DeltaCall = grpc.ServerDuplexStream<Buffer, Buffer>;

export class AdsServer {
  readonly #options: AdsOptions;
  readonly #streams = new Set<NodeStream>();
  /** Callbacks that run whenever a node has answered or disconnected. */
  readonly #waiting = new Set<() => void>();
  #snapshot: XdsSnapshot = EMPTY_XDS_SNAPSHOT;

  constructor(options: AdsOptions) {
    this.#options = options;
  }

  setSnapshot(snapshot: XdsSnapshot): void {
    this.#snapshot = snapshot;
    for (const stream of this.#streams) stream.push(snapshot);
  }

  /**
   * Waits until every connected Envoy has answered for the whole current snapshot.
   * @returns false if `timeoutMs` passed first
   */
  settled(timeoutMs: number, clock: Clock): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (settled: boolean): void => {
        this.#waiting.delete(check);
        cancel();
        resolve(settled);
      };
      const check = (): void => {
        if (this.status().every((node) => node.inSync)) finish(true);
      };
      const cancel = clock.after(timeoutMs, () => finish(false));
      this.#waiting.add(check);
      check();
    });
  }

  status(): readonly NodeStatus[] {
    return [...this.#streams].map((stream) => stream.status(this.#snapshot));
  }

  /**
   * Returns the answer of all connected Envoys for some clusters together: a rejection of one of
   * them, else a missing answer.
   */
  answerFor(clusters: readonly string[]): EnvoyAnswer {
    const answers = [...this.#streams].flatMap((stream) =>
      clusters.map((name) => stream.answerFor("cluster", name)),
    );
    return (
      answers.find(({ kind }) => kind === "rejected") ??
      answers.find(({ kind }) => kind === "pending") ??
      answers[0] ?? { kind: "pending", message: "no Envoy is connected" }
    );
  }

  /** Adds the service to a gRPC server. */
  register(server: grpc.Server): void {
    server.addService(
      {
        DeltaAggregatedResources: bytesMethod(
          "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
          true,
        ),
      },
      { DeltaAggregatedResources: (call: DeltaCall) => this.#accept(call) },
    );
  }

  #accept(call: DeltaCall): void {
    const progress = (): void => {
      for (const check of this.#waiting) check();
      this.#options.onProgress?.();
    };
    const stream = new NodeStream(call, this.#options, () => this.#snapshot, progress);
    this.#streams.add(stream);
    const gone = (): void => {
      this.#streams.delete(stream);
      progress();
    };
    call.on("cancelled", gone);
    call.on("error", gone);
    call.on("end", () => {
      gone();
      call.end();
    });
  }
}

class NodeStream {
  readonly #call: DeltaCall;
  readonly #options: AdsOptions;
  readonly #subscriptions = new Map<ResourceType, Subscription>();
  #node = "";
  #nonce = 0;

  constructor(
    call: DeltaCall,
    options: AdsOptions,
    current: () => XdsSnapshot,
    progress: () => void,
  ) {
    this.#call = call;
    this.#options = options;
    call.on("data", (bytes: Buffer) => {
      this.#onRequest(options.registry.decode(REQUEST, bytes) as unknown as DeltaRequest);
      this.push(current());
      progress();
    });
  }

  status(snapshot: XdsSnapshot): NodeStatus {
    const nacks: (Nack & { type: ResourceType })[] = [];
    const types: TypeStatus[] = [];
    let inSync = PUSH_ORDER.every((type) => this.#subscriptions.get(type)?.accepted === true);
    for (const type of PUSH_ORDER) {
      const subscription = this.#subscriptions.get(type);
      const nack = subscription?.nack;
      const open =
        subscription === undefined ||
        subscription.waiting ||
        subscription.pending(snapshot[type], true) !== undefined;
      if (nack !== undefined) nacks.push({ type, ...nack });
      if (open) inSync = false;
      types.push({
        type,
        version: versionOf(snapshot[type]),
        resources: snapshot[type].size,
        state: open ? "pending" : nack === undefined ? "acknowledged" : "rejected",
      });
    }
    return { node: this.#node, inSync, nacks, types };
  }

  answerFor(type: ResourceType, name: string): EnvoyAnswer {
    const subscription = this.#subscriptions.get(type);
    return subscription === undefined
      ? { kind: "pending", message: "Envoy has not asked for it yet" }
      : subscription.answerFor(name);
  }

  #onRequest(request: DeltaRequest): void {
    if (request.node !== undefined && request.node.id !== "" && this.#node === "") {
      this.#node = request.node.id;
      this.#options.onConnect?.(this.#node);
    }
    const type = (Object.keys(TypeUrl) as ResourceType[]).find(
      (key) => TypeUrl[key] === request.typeUrl,
    );
    if (type === undefined) return;
    const known = this.#subscriptions.get(type);
    if (known === undefined) {
      this.#subscriptions.set(
        type,
        new Subscription(request.resourceNamesSubscribe, request.initialResourceVersions),
      );
      return;
    }
    known.resubscribe(request.resourceNamesSubscribe, request.resourceNamesUnsubscribe);
    if (request.responseNonce === "") return;
    const matched = known.acknowledged(request.responseNonce, request.errorDetail?.message);
    if (matched && request.errorDetail !== undefined && known.nack !== undefined) {
      this.#options.onNack(this.#node, type, known.nack);
    }
  }

  /**
   * Sends the first type in the order that is not in sync; the next one follows when Envoy has
   * answered.
   */
  push(snapshot: XdsSnapshot): void {
    for (const type of PUSH_ORDER) {
      const subscription = this.#subscriptions.get(type);
      if (subscription === undefined) continue;
      if (subscription.waiting) return;
      const delta = subscription.pending(snapshot[type], false);
      if (delta !== undefined) return this.#send(type, subscription, delta);
    }
    for (const type of PUSH_ORDER.toReversed()) {
      const subscription = this.#subscriptions.get(type);
      const delta = subscription?.pending(snapshot[type], true);
      if (subscription !== undefined && delta !== undefined)
        return this.#send(type, subscription, delta);
    }
  }

  #send(type: ResourceType, subscription: Subscription, delta: Delta): void {
    const nonce = String(++this.#nonce);
    subscription.sending(nonce, delta);
    const typeUrl = TypeUrl[type];
    this.#call.write(encodeResponse(this.#options.registry, typeUrl, nonce, delta));
  }
}

function encodeResponse(
  registry: ProtoRegistry,
  typeUrl: string,
  nonce: string,
  delta: Delta,
): Buffer {
  // The resources are already encoded: they are appended as fields, instead of being converted
  // through JSON again.
  const head = registry.encode(RESPONSE, {
    typeUrl,
    nonce,
    removedResources: [...delta.removals],
    systemVersionInfo: nonce,
  });
  const parts: Uint8Array[] = [head];
  for (const { name, version, bytes } of delta.upserts) {
    const any = toBinary(AnySchema, create(AnySchema, { typeUrl, value: bytes }));
    const resource = Buffer.concat([
      lengthDelimited(3, Buffer.from(name)),
      lengthDelimited(1, Buffer.from(version)),
      lengthDelimited(2, any),
    ]);
    parts.push(lengthDelimited(2, resource));
  }
  return Buffer.concat(parts);
}

function lengthDelimited(field: number, payload: Uint8Array): Buffer {
  const length: number[] = [];
  let rest = payload.length;
  while (rest >= 128) {
    length.push((rest % 128) | 0x80);
    rest = Math.floor(rest / 128);
  }
  return Buffer.concat([Buffer.from([(field << 3) | 2, ...length, rest]), payload]);
}
