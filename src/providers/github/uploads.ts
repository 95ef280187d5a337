/** uploads.github.com: assets of a release, the only operation that GitHub serves there. */
import type { ActionResolution, ServiceRequest } from "../contract.ts";
import { resolveRest } from "./rest.ts";
import { unresolved } from "./unresolved.ts";

const ASSETS = /^\/repos\/[^/]+\/[^/]+\/releases\/\d+\/assets$/;

/** @param path without the prefix of GitHub Enterprise Server */
export function resolveUpload(request: ServiceRequest, path: string): ActionResolution {
  if (request.method !== "POST" || !ASSETS.test(path)) {
    return unresolved(
      "This host only takes files of a release",
      "POST /repos/owner/name/releases/<id>/assets?name=<file>",
    );
  }
  return resolveRest(request, path);
}
