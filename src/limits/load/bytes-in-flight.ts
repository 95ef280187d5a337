/**
 * BytesInFlight bounds the request bodies that this process holds: those being uploaded, and those
 * kept until an answer has begun. Memory is local to the process, so no store is involved.
 */
import { Counter, Gauge, type Registry } from "prom-client";

export interface BytesInFlightOptions {
  /** Maximum bytes of all callers together. */
  readonly total: number;
  /** Maximum bytes of one caller. */
  readonly perCaller: number;
  readonly registry: Registry;
}

/** The right to hold a body. */
export interface ByteLease {
  /**
   * Changes the size to that of the actual body. Never refused, because the bytes are already held.
   */
  resize(bytes: number): void;
  /** Releases the bytes. Further calls do nothing. */
  release(): void;
}

export type BytesAdmission =
  | { readonly kind: "admitted"; readonly lease: ByteLease }
  | { readonly kind: "refused"; readonly limit: "caller" | "total" };

export class BytesInFlight {
  readonly #total: number;
  readonly #perCaller: number;
  /** By caller; only those that hold bytes. */
  readonly #held = new Map<string, number>();
  readonly #refused: Counter;
  #sum = 0;

  constructor({ total, perCaller, registry }: BytesInFlightOptions) {
    this.#total = total;
    this.#perCaller = perCaller;
    const gauge: Gauge = new Gauge({
      name: "svc_request_bytes_in_flight",
      help: "Bytes of request bodies that are being uploaded or kept for retries.",
      registers: [registry],
      collect: () => gauge.set(this.#sum),
    });
    this.#refused = new Counter({
      name: "svc_request_bytes_refused_total",
      help:
        "Requests refused because of the limit of bytes in flight: of their caller, or of " +
        "all callers.",
      labelNames: ["limit"],
      registers: [registry],
    });
    for (const limit of ["caller", "total"]) this.#refused.inc({ limit }, 0);
  }

  /**
   * A caller may hold as much as is free, and at most `perCaller`: a single caller gets half of the
   * total, and each further caller still finds room (the dynamic threshold of Choudhury and Hahne
   * for shared buffers, with a factor of 1).
   */
  admit(caller: string, bytes: number): BytesAdmission {
    const held = this.#held.get(caller) ?? 0;
    const limit = this.#limitFor(held, bytes);
    if (limit !== undefined) {
      this.#refused.inc({ limit });
      return { kind: "refused", limit };
    }
    let size = 0;
    const resize = (next: number): void => {
      this.#add(caller, next - size);
      size = next;
    };
    resize(bytes);
    let released = false;
    return {
      kind: "admitted",
      lease: {
        resize: (next) => {
          if (!released) resize(next);
        },
        release: () => {
          released = true;
          resize(0);
        },
      },
    };
  }

  #limitFor(held: number, bytes: number): "caller" | "total" | undefined {
    if (held + bytes > this.#perCaller) return "caller";
    return held + bytes > this.#total - this.#sum ? "total" : undefined;
  }

  #add(caller: string, bytes: number): void {
    this.#sum += bytes;
    const held = (this.#held.get(caller) ?? 0) + bytes;
    if (held === 0) this.#held.delete(caller);
    else this.#held.set(caller, held);
  }
}
