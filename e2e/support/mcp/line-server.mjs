// An MCP server of the transport stdio that notes each line it reads in a file, and answers requests
// with what they call. Arguments: the file.
import { appendFileSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const file = process.argv[2];
console.error("the server has started");
const say = (message) => console.log(JSON.stringify({ jsonrpc: "2.0", ...message }));

// Every end of a line that some reader knows.
const LINES = /[\n\r\u0085\u2028\u2029]/;

createInterface({ input: process.stdin, crlfDelay: Infinity }).on("line", (whole) => {
  for (const line of whole.split(LINES)) {
    appendFileSync(file, `${line}\n`);
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      continue;
    }
    const { id, method, params } = message;
    if (id === undefined) continue;
    const name = params?.name;
    if (name === "exit") process.exit(3);
    else if (method === "initialize") {
      const serverInfo = { name: "lines", version: "1" };
      const { protocolVersion } = params;
      say({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo } });
    } else if (method === "tools/list") {
      say({ id, result: { tools: [{ name: "ls" }, { name: "rm" }] } });
    } else if (name === "pid") {
      say({ id, result: { content: [{ type: "text", text: String(process.pid) }] } });
    } else if (name === "status") {
      const text = readFileSync("/proc/self/status", "utf8");
      say({ id, result: { content: [{ type: "text", text }] } });
    } else if (name !== "never") say({ id, result: { content: [], called: name ?? method } });
  }
});
