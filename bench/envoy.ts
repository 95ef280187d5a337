/**
 * Bare Envoy, the baseline: one listener, one cluster, the provider's key injected, one JSON log
 * line per request in a file.
 */
import { accessSync, constants, writeFileSync } from "node:fs";
import path from "node:path";
import { CLIENT_KEY, MODEL, UPSTREAM_KEY } from "./answers.ts";
import { MCP_PATH } from "./mcp-messages.ts";
import { freePort, type Processes, until } from "./processes.ts";
import { answers200, type Target } from "./target.ts";

/**
 * Searched for as in `svc up`: `ENVOY_PATH`, then the PATH, then the checkout's virtual
 * environment.
 */
export function findEnvoy(root: string): string {
  const folders = (process.env["PATH"] ?? "")
    .split(path.delimiter)
    .filter((folder) => folder !== "");
  const named = process.env["ENVOY_PATH"] ?? "";
  const candidates =
    named === ""
      ? [...folders, path.join(root, ".venv/bin")].map((folder) => path.join(folder, "envoy"))
      : [named];
  const found = candidates.find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (found === undefined)
    throw new Error("Envoy was not found: run `make install`, or set ENVOY_PATH.");
  return found;
}

const type = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;

function config(port: number, upstreamPort: number, accessLog: string): object {
  const fileLog = {
    "@type": type("access_loggers.file.v3.FileAccessLog"),
    path: accessLog,
    log_format: {
      json_format: {
        time: "%START_TIME%",
        id: "%REQ(X-REQUEST-ID)%",
        method: "%REQ(:METHOD)%",
        path: "%REQ(:PATH)%",
        status: "%RESPONSE_CODE%",
        flags: "%RESPONSE_FLAGS%",
        durationMs: "%DURATION%",
        received: "%BYTES_RECEIVED%",
        sent: "%BYTES_SENT%",
        upstream: "%UPSTREAM_HOST%",
      },
    },
  };
  const connectionManager = {
    "@type": type("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "bare",
    access_log: [{ name: "envoy.access_loggers.file", typed_config: fileLog }],
    http_filters: [
      {
        name: "envoy.filters.http.router",
        typed_config: { "@type": type("filters.http.router.v3.Router") },
      },
    ],
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          request_headers_to_add: [
            {
              header: { key: "authorization", value: `Bearer ${UPSTREAM_KEY}` },
              append_action: "OVERWRITE_IF_EXISTS_OR_ADD",
            },
          ],
          routes: [{ match: { prefix: "/" }, route: { cluster: "upstream", timeout: "0s" } }],
        },
      ],
    },
  };
  const address = (portValue: number): object => ({
    socket_address: { address: "127.0.0.1", port_value: portValue },
  });
  return {
    static_resources: {
      listeners: [
        {
          name: "bare",
          address: address(port),
          filter_chains: [
            {
              filters: [
                {
                  name: "envoy.filters.network.http_connection_manager",
                  typed_config: connectionManager,
                },
              ],
            },
          ],
        },
      ],
      clusters: [
        {
          name: "upstream",
          type: "STATIC",
          connect_timeout: "1s",
          load_assignment: {
            cluster_name: "upstream",
            endpoints: [{ lb_endpoints: [{ endpoint: { address: address(upstreamPort) } }] }],
          },
        },
      ],
    },
  };
}

export async function startEnvoy(options: {
  readonly binary: string;
  readonly upstreamPort: number;
  readonly dir: string;
  readonly processes: Processes;
}): Promise<Target> {
  const { binary, upstreamPort, dir, processes } = options;
  const port = await freePort();
  const file = path.join(dir, "envoy.json");
  writeFileSync(
    file,
    JSON.stringify(config(port, upstreamPort, path.join(dir, "envoy-access.log"))),
  );
  const child = processes.start({
    place: "measured",
    command: binary,
    args: [
      "--config-path",
      file,
      "--disable-hot-restart",
      "--concurrency",
      "1",
      "--log-level",
      "warning",
    ],
    log: path.join(dir, "envoy.log"),
  });
  const target = { port, key: CLIENT_KEY, model: MODEL };
  await until(async () => answers200(target), child, "bare Envoy");
  return {
    name: "bare Envoy",
    ...target,
    mcp: { path: MCP_PATH, key: CLIENT_KEY },
    tree: { pid: child.pid ?? 0, name: "Envoy", named: [] },
  };
}
