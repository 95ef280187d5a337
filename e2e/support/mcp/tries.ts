/** Tries to call the denied tool `rm`, and lists that name it beside the allowed tool `ls`. */

export const call = (name: string, more = ""): string =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":${JSON.stringify(name)}${more}}}`;

export const LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';

const STATELESS = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}';

const wide = (text: string): string =>
  Array.from(text, (c) => String.fromCodePoint(c.charCodeAt(0) + 0xfe_e0)).join("");

export type DeniedCall = readonly [
  name: string,
  body: string | Buffer,
  headers: Readonly<Record<string, string>>,
];

export const DENIED_CALLS: readonly DeniedCall[] = [
  ["as it is", call("rm"), {}],
  ["with an escape", call("rm").replace('"rm"', String.raw`"\u0072m"`), {}],
  ["with escaped keys", call("rm").replace('"name"', String.raw`"n\u0061me"`), {}],
  ["in capitals", call("RM"), {}],
  ["wide", call(wide("rm")), {}],
  ["with a hidden character", call("r\u200Bm"), {}],
  ["with a space", call("rm "), {}],
  ["with NUL", call("rm\0"), {}],
  ["a look-alike", call("r\u043C"), {}],
  ["with two names", call("ls", ',"name":"rm"'), {}],
  ["with Name", call("ls", ',"Name":"rm"'), {}],
  ["with two params", call("ls").replace('"id"', '"params":{"name":"rm"},"id"'), {}],
  ["with Params", call("ls").replace('"id"', '"Params":{"name":"rm"},"id"'), {}],
  ["with Method", call("rm").replace('"method"', '"Method"'), {}],
  ["Tools/Call", call("rm").replace("tools/call", "Tools/Call"), {}],
  ["a method with a space", call("rm").replace("tools/call", "tools/call "), {}],
  ["as a notification", call("rm").replace('"id":1,', ""), {}],
  ["in a batch", `[${call("ls")},${call("rm")}]`, {}],
  ["in a batch of one", `[${call("rm")}]`, {}],
  ["in a batch in a batch", `[[${call("rm")}]]`, {}],
  ["behind another message", `${call("ls")}\n${call("rm")}`, {}],
  ["with a byte order mark", `\uFEFF${call("rm")}`, {}],
  ["in UTF-16", Buffer.from(call("rm"), "utf16le"), {}],
  ["in UTF-7", call("rm"), { "content-type": "application/json; charset=utf-7" }],
  ["with invalid UTF-8", Buffer.from(call("r\xFFm"), "latin1"), {}],
  ["as a form", call("rm"), { "content-type": "application/x-www-form-urlencoded" }],
  ["as text", call("rm"), { "content-type": "text/plain" }],
  ["without a type", call("rm"), { "content-type": "" }],
  ["compressed", call("rm"), { "content-encoding": "gzip" }],
  ["nested deeply", call("ls", `,"arguments":${"[".repeat(100)}${"]".repeat(100)}`), {}],
  ["Mcp-Name unlike the body", call("rm"), { "mcp-name": "ls" }],
  ["Mcp-Name of an allowed one", call("ls"), { "mcp-name": "rm" }],
  ["Mcp-Method unlike the body", call("rm"), { "mcp-method": "tools/list" }],
  [
    "stateless",
    call("rm", `,${STATELESS}`),
    { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "rm" },
  ],
  [
    "stateless, Mcp-Name unlike the body",
    call("rm", `,${STATELESS}`),
    { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "ls" },
  ],
  ["stateless without the headers", call("ls", `,${STATELESS}`), {}],
  [
    "a retry with answers",
    call("rm", ',"inputResponses":{},"requestState":"s"'),
    { "mcp-method": "tools/call" },
  ],
];

const LISTED = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  result: { tools: ["ls", "rm"].map((name) => ({ name, inputSchema: { type: "object" } })) },
});

export interface ListAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

const event = (data: string): string => `event: message\nid: 1\ndata: ${data}\n\n`;
const stream = { "content-type": "text/event-stream" };

/** An event with the list. */
export const LIST_EVENT: ListAnswer = { body: event(LISTED), headers: stream };

export const LISTS: readonly (readonly [name: string, answer: ListAnswer])[] = [
  ["JSON", { body: LISTED }],
  ["JSON with parameters", { body: LISTED, headers: { "content-type": "Application/JSON; a=b" } }],
  ["an event", LIST_EVENT],
  ["an event without its end", { body: event(LISTED).trimEnd(), headers: stream }],
  ["an event in several lines", { body: `data: {\ndata: ${LISTED.slice(1)}\n\n`, headers: stream }],
  ["an event with CR", { body: `data: ${LISTED}\r\r`, headers: stream }],
  ["a later event", { body: `${event("{}")}: c\n\n${event(LISTED)}`, headers: stream }],
  ["a batch in an event", { body: event(`[${LISTED}]`), headers: stream }],
  ["a batch", { body: `[${LISTED}]` }],
  ["escaped keys", { body: LISTED.replace('"tools"', String.raw`"t\u006fols"`) }],
  ["an escaped name", { body: LISTED.replace('"rm"', String.raw`"\u0072m"`) }],
  ["two lists", { body: LISTED.replace('"tools"', '"tools":[],"tools"') }],
  ["two results", { body: LISTED.replace('"result"', '"result":{},"result"') }],
  ["a byte order mark", { body: `\uFEFF${LISTED}` }],
  ["text", { body: LISTED, headers: { "content-type": "text/plain" } }],
  ["no type", { body: LISTED, headers: { "content-type": "" } }],
  ["HTML", { body: LISTED, headers: { "content-type": "text/html" } }],
  ["JSON lines", { body: LISTED, headers: { "content-type": "application/json-seq" } }],
  ["201", { body: LISTED, status: 201 }],
  ["202", { body: LISTED, status: 202 }],
  ["206", { body: LISTED, status: 206 }],
  ["404", { body: LISTED, status: 404 }],
  ["404 as text", { body: LISTED, status: 404, headers: { "content-type": "text/plain" } }],
  ["500", { body: LISTED, status: 500 }],
  ["a redirect", { body: LISTED, status: 307, headers: { location: "https://127.0.0.1/" } }],
  ["gzip", { body: LISTED, headers: { "content-encoding": "gzip" } }],
  ["a 401", { body: LISTED, status: 401 }],
];
