/**
 * A filter that takes off response headers that hold a credential which the request was sent with: a
 * service, or a proxy in front of it, may quote it. Only Envoy sees every header of every answer, and
 * it has no filter of its own that compares their values, so it is a script. It belongs between the
 * filter that puts the credential on and the router.
 */
import type { Json } from "./json.ts";

export const LUA = "envoy.filters.http.lua";
export const LUA_TYPE = "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua";

/** Shorter ones are placeholders, and may be words of any header. */
const SHORTEST = 8;

/** Where credentials are noted: one a line, which no header can hold. */
interface Note {
  readonly namespace: string;
  readonly key: string;
}

/** Notes the values of request headers, without their scheme (`Bearer`). */
function noteHeaders(names: readonly string[], { namespace, key }: Note): string {
  return `
local NAMES = { ${names.map((name) => `"${name}"`).join(", ")} }

function envoy_on_request(handle)
  local headers = handle:headers()
  local sent = {}
  for _, name in ipairs(NAMES) do
    local value = headers:get(name)
    if value ~= nil then
      sent[#sent + 1] = value:match("^%S+%s+(.+)$") or value
    end
  end
  if #sent > 0 then
    handle:streamInfo():dynamicMetadata():set("${namespace}", "${key}", table.concat(sent, "\\n"))
  end
end
`;
}

/**
 * Headers cannot be changed while they are walked through.
 * @param forget lines that take the note away, before anything is logged
 */
function removeEchoes({ namespace, key }: Note, forget: string): string {
  return `
function envoy_on_response(handle)
  local metadata = handle:streamInfo():dynamicMetadata()
  local noted = metadata:get("${namespace}")
  local sent = noted and noted["${key}"]
  if type(sent) ~= "string" or sent == "" then return end
  ${forget}
  local secrets = {}
  for secret in sent:gmatch("[^\\n]+") do
    if #secret >= ${SHORTEST} then secrets[#secrets + 1] = secret end
  end
  local headers = handle:headers()
  local echoes = {}
  for name, value in pairs(headers) do
    for _, secret in ipairs(secrets) do
      if value:find(secret, 1, true) then echoes[#echoes + 1] = name end
    end
  end
  for _, name in ipairs(echoes) do headers:remove(name) end
end
`;
}

/** Of the gateway: the request's own headers have the provider's key. @returns Lua's settings */
export function echoesOfHeaders(names: readonly string[]): Json {
  const note = { namespace: "svc.echoes", key: "sent" };
  // No log of the gateway's has every request's metadata: there is nothing to take away.
  return settings(noteHeaders(names, note) + removeEchoes(note, ""));
}

/** Of the sidecar: the authorizer notes what it puts on. @returns Lua's settings */
export function echoesOfNote(note: Note): Json {
  const { namespace, key } = note;
  return settings(removeEchoes(note, `metadata:set("${namespace}", "${key}", "")`));
}

function settings(script: string): Json {
  return { default_source_code: { inline_string: script } };
}
