/** Environment variables that make each client trust the sidecar's authority. */
import path from "node:path";

/** Files of the trust folder, which contain certificates, and never a key. */
export const TRUST_FILES = {
  authority: "ca.crt",
  bundle: "ca-bundle.crt",
  javaStore: "truststore.p12",
} as const;

/** Java requires a password, although nothing in the file is secret. */
export const TRUST_STORE_PASSWORD = "changeit";

type TrustFile = keyof typeof TRUST_FILES;

export interface TrustVariable {
  readonly name: string;
  /** Clients that read the variable. */
  readonly readBy: string;
  readonly file: TrustFile;
  /** @defaultValue the file's path */
  readonly value?: (file: string) => string;
}

/**
 * Most of these replace a client's roots, so they name the bundle, which also contains the system's
 * roots.
 */
export const TRUST_VARIABLES: readonly TrustVariable[] = [
  {
    name: "SSL_CERT_FILE",
    readBy: "OpenSSL (Python's ssl, Ruby, PHP, wget2), Go, rustls-native-certs",
    file: "bundle",
  },
  { name: "REQUESTS_CA_BUNDLE", readBy: "Python requests", file: "bundle" },
  { name: "PIP_CERT", readBy: "pip", file: "bundle" },
  {
    name: "NODE_EXTRA_CA_CERTS",
    readBy: "Node.js, in addition to its own roots",
    file: "authority",
  },
  { name: "DENO_CERT", readBy: "Deno, in addition to its own roots", file: "authority" },
  { name: "GIT_SSL_CAINFO", readBy: "git", file: "bundle" },
  { name: "CURL_CA_BUNDLE", readBy: "curl", file: "bundle" },
  { name: "CARGO_HTTP_CAINFO", readBy: "cargo", file: "bundle" },
  {
    name: "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    readBy: "gRPC (C core: Python, Ruby, PHP, C++)",
    file: "bundle",
  },
  { name: "AWS_CA_BUNDLE", readBy: "AWS CLI and SDKs", file: "bundle" },
  { name: "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", readBy: "gcloud", file: "bundle" },
  {
    name: "JAVA_TOOL_OPTIONS",
    readBy: "Java",
    file: "javaStore",
    value: (file) =>
      `-Djavax.net.ssl.trustStore=${file} -Djavax.net.ssl.trustStoreType=PKCS12 ` +
      `-Djavax.net.ssl.trustStorePassword=${TRUST_STORE_PASSWORD}`,
  },
];

/**
 * @param dir the trust folder, as the agent sees it
 * @throws RangeError for a path that Java's variable, which is split at spaces, cannot contain
 */
export function trustEnvironment(dir: string): Record<string, string> {
  if (!/^\/[^\s"'\\]*$/.test(dir))
    throw new RangeError(
      "the trust folder must be an absolute path without spaces, quotes and backslashes: " +
        JSON.stringify(dir),
    );
  return Object.fromEntries(
    TRUST_VARIABLES.map(({ name, file, value = (path) => path }) => [
      name,
      value(path.join(dir, TRUST_FILES[file])),
    ]),
  );
}
