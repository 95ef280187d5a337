/** Where an upstream of the old transport takes frames: what its `endpoint` event says. */

const MAX_LENGTH = 8_192;

/** Error for an `endpoint` event that cannot be followed. Its message contains none of it. */
export class EndpointError extends Error {
  constructor(problem: string) {
    super(`The MCP server's endpoint event ${problem}.`);
    this.name = "EndpointError";
  }
}

/**
 * Resolves an `endpoint` event against the URL of the stream. Frames carry the server's credential,
 * so another host is refused. The scheme does not matter: a server behind a proxy may not know its
 * own, and frames go to the cluster of the stream in any case.
 * @param host `host` header of the stream's request
 * @param target path and query of the stream's request
 * @returns path and query
 * @throws EndpointError
 */
export function resolveEndpoint(data: string, host: string, target: string): string {
  if (data.length > MAX_LENGTH) throw new EndpointError("is too long");
  const scheme = /^http:/i.test(data.trim()) ? "http" : "https";
  const base = `${scheme}://${host}${target}`;
  if (!URL.canParse(data, base)) throw new EndpointError("is not a URL");
  const url = new URL(data, base);
  const own = new URL(base);
  if (url.origin !== own.origin || url.username !== "" || url.password !== "") {
    throw new EndpointError("names another origin than the stream's");
  }
  return `${url.pathname}${url.search}`;
}
