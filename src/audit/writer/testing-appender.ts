/**
 * Test program: appends without end, and prints the number of each committed record. `<dir> <key
 * file> <last number>`
 */
import { writeSync } from "node:fs";
import { pino } from "pino";
import { Registry } from "prom-client";
import { systemClock } from "../../platform/clock.ts";
import { openAuditWriter } from "./writer.ts";

const [dir = "", keyFile = "", last = "0"] = process.argv.slice(2);
const writer = await openAuditWriter({
  dir,
  writer: "gw",
  keyFile,
  onFailure: "refuse",
  sync: "none",
  clock: systemClock,
  log: pino({ level: "silent" }),
  registry: new Registry(),
  checkpointRecords: 50,
  commitMs: 0,
  segmentBytes: 20_000,
});
let next = Number(last);
const go = (): void => {
  const i = ++next;
  writer.append({ type: "LLM_CALL", fields: { i, pad: "x".repeat(i % 300) } }, (outcome) => {
    if (outcome === "committed") writeSync(1, `${i}\n`);
    setImmediate(go);
  });
};
for (let i = 0; i < 8; i++) go();
