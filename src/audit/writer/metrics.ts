/** Prometheus metrics of the audit chain. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

export class AuditMetrics {
  readonly records: Counter;
  readonly lost: Counter;
  readonly up: Gauge;
  readonly commit: Histogram;
  readonly checkpoint: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.records = new Counter({
      name: "svc_audit_records_total",
      help: "Records committed to the audit chain, by type.",
      labelNames: ["type"],
      registers,
    });
    this.lost = new Counter({
      name: "svc_audit_lost_total",
      help: "Records that could not be written.",
      registers,
    });
    this.up = new Gauge({
      name: "svc_audit_up",
      help: "1 while the audit chain can be written, 0 while it cannot.",
      registers,
    });
    this.commit = new Histogram({
      name: "svc_audit_commit_seconds",
      help:
        "Duration of one commit: a batch of records is written and, unless sync is none, " +
        "durable.",
      buckets: SECONDS,
      registers,
    });
    this.checkpoint = new Gauge({
      name: "svc_audit_checkpoint_seq",
      help: "Sequence number of the last signed record.",
      registers,
    });
  }
}
