/** The worker thread of `svc guard --type promptGuard`. */
import { parentPort, workerData } from "node:worker_threads";
import { type ModelOptions, serveModel } from "../guard/service/model-worker.ts";

if (parentPort === null) throw new Error("this program runs as a worker thread only");
await serveModel(parentPort, workerData as ModelOptions);
