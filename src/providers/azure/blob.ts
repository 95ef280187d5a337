/**
 * Blob storage: data actions by method, `restype` and `comp`.
 * https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api
 */
import type {
  ActionResolution,
  ResolvedAction,
  ServiceResource,
  ServiceRequest,
} from "../contract.ts";
import { type Parameters } from "../raw-url.ts";
import { plainSegments } from "../url-path.ts";
import { azureHost } from "./hosts.ts";
import { placeOf, type AzurePlaces } from "./resources.ts";
import { unresolved } from "./unresolved.ts";

const BASE = "Microsoft.Storage/storageAccounts/blobServices";
const CONTAINER = /^(?:\$root|\$web|\$logs|[a-z0-9](?:-?[a-z0-9]){2,62})$/;

/** By method, `restype` and `comp`. */
const ACCOUNT: Readonly<Record<string, string>> = {
  "GET  list": "containers/read",
  "GET service properties": "read",
  "GET service stats": "read",
  "PUT service properties": "write",
  "GET  blobs": "containers/blobs/filter/action",
};
const CONTAINERS: Readonly<Record<string, string>> = {
  "GET container ": "containers/read",
  "HEAD container ": "containers/read",
  "GET container metadata": "containers/read",
  "HEAD container metadata": "containers/read",
  "GET container list": "containers/blobs/read",
  "GET container acl": "containers/getAcl/action",
  "HEAD container acl": "containers/getAcl/action",
  "PUT container ": "containers/write",
  "PUT container metadata": "containers/write",
  "PUT container acl": "containers/setAcl/action",
  "PUT container lease": "containers/lease/action",
  "DELETE container ": "containers/delete",
};
const WRITES = [
  "",
  "appendblock",
  "block",
  "blocklist",
  "expiry",
  "incrementalcopy",
  "lease",
  "metadata",
  "page",
  "properties",
  "seal",
  "snapshot",
  "tier",
  "undelete",
];
const BLOBS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ["", "blocklist", "metadata", "pagelist"].flatMap((comp) =>
      [`GET  ${comp}`, `HEAD  ${comp}`].map((key) => [key, "containers/blobs/read"]),
    ),
  ),
  ...Object.fromEntries(WRITES.map((comp) => [`PUT  ${comp}`, "containers/blobs/write"])),
  "GET  tags": "containers/blobs/tags/read",
  "PUT  tags": "containers/blobs/tags/write",
  "POST  query": "containers/blobs/read",
  "DELETE  ": "containers/blobs/delete",
};

export function resolveBlob(
  request: ServiceRequest,
  account: string,
  segments: readonly string[],
  query: Parameters,
  places: AzurePlaces,
): ActionResolution {
  const value = (name: string): string => query.find(([other]) => other === name)?.[1] ?? "";
  const table = [ACCOUNT, CONTAINERS, BLOBS][Math.min(segments.length, 2)] as Readonly<
    Record<string, string>
  >;
  const key = `${request.method} ${value("restype")} ${value("comp")}`;
  const nearly = query.find(
    ([name]) =>
      name !== name.toLowerCase() &&
      ["restype", "comp", "versionid", "snapshot", "deletetype"].includes(name.toLowerCase()),
  );
  if (nearly !== undefined)
    return unresolved("A parameter stands in the query in other letters than Azure's");
  if (!Object.hasOwn(table, key))
    return unresolved("This operation is not known of blob storage, or answers with credentials");
  if (segments[0] !== undefined && !CONTAINER.test(segments[0]))
    return unresolved("The path does not begin with the name of a container");
  const resources = blobResources(account, segments, places);
  const actions: ResolvedAction[] = [{ action: `${BASE}/${table[key] ?? ""}`, resources }];
  if (key === "DELETE  " && query.some(([name]) => name === "versionid"))
    actions.push({ action: `${BASE}/containers/blobs/deleteBlobVersion/action`, resources });
  if (key === "DELETE  " && query.some(([name]) => name === "deletetype"))
    actions.push({ action: `${BASE}/containers/blobs/permanentDelete/action`, resources });
  if (request.headers.has("x-ms-tags") && segments.length > 1)
    actions.push({ action: `${BASE}/containers/blobs/tags/write`, resources });
  const copied = copyOf(request, places);
  if (copied === "doubt")
    return unresolved(
      "x-ms-copy-source is not the plain address of a blob",
      "Send https://<account>.blob.core.windows.net/<container>/<blob>, or upload the data itself.",
    );
  return { kind: "resolved", actions: copied === undefined ? actions : [...actions, copied] };
}

const MAX_SHOWN = 1_024;

/** Returns the place of the account, and the container; for the whole account there is none. */
function blobResources(
  account: string,
  [container, ...blob]: readonly string[],
  places: AzurePlaces,
): readonly ServiceResource[] {
  const place = placeOf(account, places);
  if (container === undefined) return place;
  const value = `${account}/${container}`;
  const shown = [value, ...blob].join("/").slice(0, MAX_SHOWN);
  return [...place, { kind: "scoped", key: "containers", value, shown }];
}

/** Returns the source that is read if the service itself fetches the data. */
function copyOf(
  request: ServiceRequest,
  places: AzurePlaces,
): ResolvedAction | "doubt" | undefined {
  if (request.headers.has("x-ms-rename-source") || request.headers.has("x-ms-file-copy-source"))
    return "doubt";
  const source = request.headers.get("x-ms-copy-source");
  if (source === undefined) return undefined;
  const [, host = "", path = ""] =
    /^https:\/\/([a-z0-9.-]+)(\/[^?#\s,]+)(?:\?(?:snapshot|versionid)=[0-9A-Za-z.:%-]+)?$/.exec(
      source,
    ) ?? [];
  const from = azureHost(host);
  const segments = plainSegments(path, { slashes: true });
  if (
    from?.kind !== "blob" ||
    segments === undefined ||
    segments.trailingSlash ||
    segments.segments.length < 2 ||
    !CONTAINER.test(segments.segments[0] ?? "")
  )
    return "doubt";
  const resources = blobResources(from.account, segments.segments, places);
  return { action: `${BASE}/containers/blobs/read`, resources };
}
