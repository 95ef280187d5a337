/**
 * Loaded before a gateway (see preload.ts): its time of day is the machine's, moved by the
 * milliseconds in a file.
 */
import { readFileSync } from "node:fs";

const file = process.env["SVC_E2E_CLOCK"] ?? "";
const { now } = Date;
const moved = () => now() + Number(readFileSync(file, "utf8"));

globalThis.Date = new Proxy(Date, {
  construct: (target, args, self) =>
    Reflect.construct(target, args.length === 0 ? [moved()] : args, self),
});
Date.now = moved;
