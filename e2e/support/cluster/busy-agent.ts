/** An agent that calls a model and a service all the time, and counts what fails. */

/** Runs in the agent's container, until SIGTERM; prints reports, and what failed. */
export const BUSY_SCRIPT = `
  const url = "https://api.github.com/repos/acme/app/issues";
  let failed = 0, calls = 0, going = true;
  process.on("SIGTERM", () => (going = false));
  const report = () => console.log(JSON.stringify({ calls, failed }));
  const openai = process.env.OPENAI_BASE_URL + "/chat/completions";
  const chat = { method: "POST", headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY,
    "content-type": "application/json" }, body: JSON.stringify({ model: "mock/small",
    messages: [{ role: "user", content: "Hello" }] }) };
  while (going) {
    calls += 2;
    for (const [where, init] of [[url, {}], [openai, chat]])
      await fetch(where, init).then(async (answer) => {
        await answer.text();
        if (answer.status !== 200) { failed += 1; console.log(where, answer.status); }
      }, (error) => { failed += 1; console.log(where, String(error.cause ?? error)); });
    await new Promise((resolve) => setTimeout(resolve, 20));
    if (calls % 50 === 0) report();
  }
  report();
  console.log("the end");`;

export interface BusyReport {
  readonly calls: number;
  readonly failed: number;
}

/** The reports in the agent's log, oldest first; each counts from the start. */
export function reportsOf(log: string): readonly BusyReport[] {
  return log
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as BusyReport);
}
