/**
 * Loaded before `svc up` (NODE_OPTIONS), which passes none of its variables on: gives its gateway, and
 * no other process, a module to load first and the variables that begin with SVC_E2E_.
 */
import { ChildProcess } from "node:child_process";

const { spawn } = ChildProcess.prototype;

ChildProcess.prototype.spawn = function (options) {
  if (options.args.some((argument) => argument.endsWith("dist/gateway.js"))) {
    const own = Object.entries(process.env).filter(([name]) => name.startsWith("SVC_E2E_"));
    options.envPairs.push(
      `NODE_OPTIONS=--import=${process.env["SVC_E2E_PRELOAD"]}`,
      ...own.map(([name, value]) => `${name}=${value}`),
    );
  }
  return spawn.call(this, options);
};
