/**
 * A filter that removes response headers that contain a credential of the request: a service, or a
 * proxy in front of it, may echo it. Only Envoy sees every header of every response, and it has no
 * built-in filter that compares their values, so this is a script. It must be between the filter
 * that injects the credential and the router.
 */
import type { HttpFilter } from "../../gen/messages.ts";
import { Extension, extension } from "./extensions.ts";
import { InternalHeader } from "./names.ts";

/** Minimum length of a credential; shorter ones are placeholders, and may occur in any header. */
const SHORTEST = 8;

/** Location of the noted credentials: one per line, because no header can contain a line break. */
interface Note {
  readonly namespace: string;
  readonly key: string;
}

/**
 * Notes the values of request headers, without their scheme (`Bearer`) and without the name of a
 * parameter (`Token token=...`). A processor may name one
 * more header, by {@link InternalHeader.credential}.
 */
function noteHeaders(names: readonly string[], { namespace, key }: Note): string {
  return `
local NAMES = { ${names.map((name) => `"${name}"`).join(", ")} }

function envoy_on_request(handle)
  local headers = handle:headers()
  local sent = {}
  local function note(name)
    local value = headers:get(name)
    if value == nil then return end
    local secret = value:match("^%S+%s+(.+)$") or value
    sent[#sent + 1] = secret
    local inner = secret:match('^[%w_-]+="?([^"]+)"?$')
    if inner ~= nil then sent[#sent + 1] = inner end
  end
  for _, name in ipairs(NAMES) do note(name) end
  local named = headers:get("${InternalHeader.credential}")
  if named ~= nil then note(named) end
  if #sent > 0 then
    handle:streamInfo():dynamicMetadata():set("${namespace}", "${key}", table.concat(sent, "\\n"))
  end
end
`;
}

/**
 * Headers cannot be changed during iteration.
 * @param forget lines that remove the note before anything is logged
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

/** Builds the filter of the gateway: the request's own headers contain the provider's key. */
export function echoesOfHeaders(names: readonly string[]): HttpFilter {
  const note = { namespace: "svc.echoes", key: "sent" };
  // No log of the gateway contains every request's metadata: there is nothing to remove.
  return lua(noteHeaders(names, note) + removeEchoes(note, ""));
}

/** Builds the filter of the sidecar: the authorizer notes the injected credential. */
export function echoesOfNote(note: Note): HttpFilter {
  const { namespace, key } = note;
  return lua(removeEchoes(note, `metadata:set("${namespace}", "${key}", "")`));
}

function lua(script: string): HttpFilter {
  return extension(Extension.lua, { defaultSourceCode: { inlineString: script } });
}
