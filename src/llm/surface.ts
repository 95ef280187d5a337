/** The surfaces of the LLM gateway, and its processors. */
import { externalPaths } from "../access/audience.ts";
import { CALL_ID_HEADER } from "../envoy/config/names.ts";
import {
  CallerListener,
  type ProcessorEndpoint,
  type Surface,
  type SurfacePath,
} from "../envoy/config/surface.ts";
import { EXTERNAL_GEMINI_PATHS, FIXED_PATHS, GEMINI_PATHS } from "./request/routes.ts";

/** Maximum size of a request body in bytes; larger ones are answered with 413. */
export const MAX_REQUEST_BODY_BYTES = 32 * 1024 * 1024;

/** The processor of calls: see processor.ts. */
export const LLM_PROCESSOR: ProcessorEndpoint = {
  name: "llm",
  socket: "llm.sock",
  headers: [
    { exact: ":method" },
    { exact: ":path" },
    { exact: ":status" },
    { exact: "authorization" },
    { exact: "x-api-key" },
    { exact: "api-key" },
    { exact: "x-goog-api-key" },
    { exact: "content-type" },
    { exact: "content-length" },
    { exact: "content-encoding" },
    { exact: "anthropic-version" },
    { exact: "anthropic-beta" },
    { exact: "retry-after" },
    { exact: "x-forwarded-for" },
    { prefix: "x-svc-" },
    { exact: CALL_ID_HEADER },
  ],
  mode: {
    requestHeaderMode: "SEND",
    requestBodyMode: "BUFFERED",
    requestTrailerMode: "SKIP",
    responseHeaderMode: "SEND",
    responseBodyMode: "NONE",
    responseTrailerMode: "SKIP",
  },
  changesMode: true,
  // A slower Node is considered hung, and the request fails closed.
  messageTimeoutMs: 15_000,
  seesRequestsWithoutRoute: true,
};

/** The processor of attempts after the first: see attempts/attempt-processor.ts. */
export const ATTEMPT_PROCESSOR: ProcessorEndpoint = {
  name: "attempt",
  socket: "attempt.sock",
  headers: [{ exact: CALL_ID_HEADER }],
  mode: {
    requestHeaderMode: "SEND",
    requestBodyMode: "NONE",
    requestTrailerMode: "SKIP",
    responseHeaderMode: "SKIP",
    responseBodyMode: "NONE",
    responseTrailerMode: "SKIP",
  },
  changesMode: false,
  // Longer than any possible wait before an attempt (maxRetryAfterMs and maxIntervalMs, 300 s each
  // at most).
  messageTimeoutMs: 630_000,
  // It is the only one of its listener, and every request is for it.
  seesRequestsWithoutRoute: true,
};

const exact = (path: string): SurfacePath => ({ kind: "exact", path });
const template = (regex: string): SurfacePath => ({ kind: "template", regex });

/**
 * Returns the surfaces of the LLM gateway: that of agents, and that of holders of access keys.
 * @param options.uploadIdleMs a request whose body makes no progress for this time ends with 408
 */
export function llmSurfaces({
  uploadIdleMs,
}: {
  readonly uploadIdleMs: number;
}): readonly Surface[] {
  const common = {
    methods: ["POST"],
    destination: { kind: "provider", processor: LLM_PROCESSOR },
    bodyLimitBytes: MAX_REQUEST_BODY_BYTES,
    // No limit on the total time, because answers may stream without limit. Attempts have limits
    // by header.
    timeouts: { answerMs: undefined, idleMs: uploadIdleMs },
  } as const satisfies Partial<Surface>;
  return [
    {
      ...common,
      name: "llm",
      listeners: [CallerListener.internal],
      paths: [...FIXED_PATHS.map(exact), ...GEMINI_PATHS.map(template)],
    },
    {
      ...common,
      name: "external-llm",
      listeners: [CallerListener.internal, CallerListener.external],
      paths: [
        ...FIXED_PATHS.flatMap(externalPaths).map(exact),
        ...EXTERNAL_GEMINI_PATHS.map(template),
      ],
    },
  ];
}
