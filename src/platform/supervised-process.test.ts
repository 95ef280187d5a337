import { Writable } from "node:stream";
import { pino } from "pino";
import { afterEach, describe, expect, test } from "vitest";
import { SupervisedProcess, type SupervisedProcessOptions } from "./supervised-process.ts";

/** Runs until it is stopped. */
const FOREVER = "setInterval(() => undefined, 1e9);";

/** Records the behaviour of a process, with promises for its output. */
class Watched {
  readonly lines: string[] = [];
  readonly logged: string[] = [];
  readonly #waiting: { readonly done: () => boolean; readonly resolve: () => void }[] = [];
  readonly process: SupervisedProcess;
  exits = 0;

  constructor(script: string, options: Partial<SupervisedProcessOptions> = {}) {
    const destination = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        this.logged.push(chunk.toString());
        this.#check();
        done();
      },
    });
    this.process = new SupervisedProcess({
      name: "watched",
      command: process.execPath,
      args: ["--eval", script],
      log: pino({}, destination),
      onLine: (line) => {
        this.lines.push(line);
        this.#check();
      },
      onExit: () => {
        this.exits++;
        this.#check();
      },
      ...options,
    });
  }

  until(done: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ done, resolve });
      this.#check();
    });
  }

  #check(): void {
    for (const { done, resolve } of this.#waiting) if (done()) resolve();
  }
}

let watched: Watched | undefined;

afterEach(async () => {
  await watched?.process.stop(1_000);
});

const start = (script: string, options?: Partial<SupervisedProcessOptions>): Watched => {
  watched = new Watched(script, options);
  watched.process.start();
  return watched;
};

const alive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe("a supervised process", () => {
  test("gives the lines of both its outputs, and its environment is the one that was given", async () => {
    const one = start(
      `console.log("out", process.env.GIVEN, process.env.HOME); console.error("err"); ${FOREVER}`,
      { env: { GIVEN: "yes" } },
    );
    await one.until(() => one.lines.length === 2);
    expect(one.lines.sort()).toEqual(["err", "out yes undefined"]);
  });

  test("is started again when it ends", async () => {
    const one = start("console.log('up'); process.exit(3)");
    await one.until(() => one.lines.length === 2 && one.exits === 2);
    expect(one.process.restarts).toBeGreaterThanOrEqual(1);
    expect(one.logged.join("")).toContain('"code":3');
  });

  test("waits longer each time", async () => {
    const one = start("process.exit(0)");
    await one.until(() => one.logged.length >= 3);
    const waits = one.logged.map(
      (line) => (JSON.parse(line) as { restartInMs?: number }).restartInMs,
    );
    expect(waits.slice(0, 3)).toEqual([50, 100, 200]);
  });

  test("a stop ends it, and it is not started again", async () => {
    const one = start(`console.log("up"); ${FOREVER}`);
    await one.until(() => one.lines.length === 1);
    const pid = one.process.pid as number;
    await one.process.stop(5_000);
    expect(alive(pid)).toBe(false);
    expect(one.process.pid).toBeUndefined();
    expect([one.exits, one.process.restarts]).toEqual([0, 0]);
    await one.process.stop(5_000);
  });

  test("one that does not listen is killed after the grace", async () => {
    const one = start(
      `process.on("SIGTERM", () => console.log("heard")); console.log("up"); ${FOREVER}`,
    );
    await one.until(() => one.lines.includes("up"));
    const pid = one.process.pid as number;
    await one.process.stop(10);
    expect(alive(pid)).toBe(false);
  });

  test("a stop while it waits to be started again", async () => {
    const one = start("process.exit(0)");
    await one.until(() => one.logged.length >= 1);
    await one.process.stop(1_000);
    const { restarts } = one.process;
    await new Promise((resolve) => setImmediate(resolve));
    expect(one.process.restarts).toBe(restarts);
    expect(one.process.pid).toBeUndefined();
  });

  test("a stop before the start is nothing", async () => {
    watched = undefined;
    await new Watched("").process.stop(1_000);
  });

  test("a command that does not exist is told, again and again, and can be stopped", async () => {
    const one = start("", { command: "/does/not/exist" });
    await one.until(() => one.exits >= 2);
    await one.process.stop(1_000);
    expect(one.logged.join("\n")).toMatch(/starting it again|cannot be started/);
  });
});
