/**
 * Environment variables of an agent that its author cannot set: those that svc sets, and those by
 * which the loader runs other code in every program.
 */

/**
 * Names that svc sets: the endpoints and tokens of the SDKs, and the files of trusted roots. A test
 * compares them with what is set.
 */
const SET_BY_SVC = [
  "OPENAI_BASE_URL",
  "OPENAI_API_KEY",
  "ANTHROPIC_BASE_URL",
  "ANTHROPIC_API_KEY",
  "GOOGLE_GEMINI_BASE_URL",
  "GEMINI_API_KEY",
  "SSL_CERT_FILE",
  "REQUESTS_CA_BUNDLE",
  "PIP_CERT",
  "NODE_EXTRA_CA_CERTS",
  "DENO_CERT",
  "GIT_SSL_CAINFO",
  "CURL_CA_BUNDLE",
  "CARGO_HTTP_CAINFO",
  "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
  "AWS_CA_BUNDLE",
  "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
  "JAVA_TOOL_OPTIONS",
] as const;

/** Variables of the dynamic loader (ld.so(8)) that load code into every program. */
const LOADER = ["LD_PRELOAD", "LD_AUDIT"] as const;

/** Prefix of svc's own variables. */
export const RESERVED_ENV_PREFIX = "SVC_";

export const RESERVED_ENV_NAMES: readonly string[] = [...SET_BY_SVC, ...LOADER];

/** Returns whether an agent's author cannot set a variable. */
export function isReservedEnvName(name: string): boolean {
  return name.startsWith(RESERVED_ENV_PREFIX) || RESERVED_ENV_NAMES.includes(name);
}
