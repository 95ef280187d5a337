/** The surfaces of the gateway's own HTTP endpoints: see api.ts. */
import { EXTERNAL_PREFIX } from "../access/audience.ts";
import { CallerListener, type LocalEndpoint, type Surface } from "../envoy/config/surface.ts";

/** The HTTP server of models, metrics, readiness, and errors for unknown paths. */
export const API_SERVICE: LocalEndpoint = { name: "api", socket: "api.sock" };

const common = {
  methods: undefined,
  destination: { kind: "service", service: API_SERVICE, processor: undefined },
  // Bodies are discarded.
  bodyLimitBytes: undefined,
  timeouts: { answerMs: 30_000, idleMs: undefined },
} as const satisfies Partial<Surface>;

export const API_SURFACES: readonly Surface[] = [
  {
    ...common,
    name: "api",
    listeners: [CallerListener.internal],
    paths: [{ kind: "prefix", path: "/" }],
  },
  {
    ...common,
    name: "external-api",
    listeners: [CallerListener.external],
    paths: [`${EXTERNAL_PREFIX}/`, "/webhooks/", "/agents/", "/sessions/"].map((path) => ({
      kind: "prefix",
      path,
    })),
  },
];
