/**
 * Memory of an idle sidecar with every plugin bound, whose tokens have been exchanged: `node
 * bench/sidecar-memory.ts [rounds]`, after `make build`. Writes one line for each start, and the
 * medians.
 */
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { AzureServer } from "../e2e/support/azure-server.ts";
import { GoogleServer } from "../e2e/support/google-server.ts";
import { Outside } from "../e2e/support/services.ts";
import { Sidecar } from "../e2e/support/sidecar.ts";
import { SlackServer } from "../e2e/support/slack-server.ts";

/** Time for the work of a start to end. */
const SETTLE_MS = 3_000;

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const EMAIL = "robot@my-project.iam.gserviceaccount.com";
const AZURE = {
  tenantId: "01234567-89ab-cdef-0123-456789abcdef",
  clientId: "11234567-89ab-cdef-0123-456789abcdef",
  clientSecret: "the~real.secret-of-the-application-0123456",
};
const SLACK = { clientId: "1.2", clientSecret: "s3cr3t", refreshToken: "xoxe-1-first" };
const SECRETS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  aws: { accessKeyId: "AKIAREALREALREALREAL", secretAccessKey: "the/real+secret/of+these/tests0" },
  azure: AZURE,
  discord: { token: "the-token-of-the-bot" },
  gcp: {
    serviceAccount: JSON.stringify({
      type: "service_account",
      private_key: privateKey.export({ type: "pkcs8", format: "pem" }),
      client_email: EMAIL,
    }),
  },
  github: { token: "ghp_the-real-token-0123456789" },
  slack: SLACK,
};
const AUTH: Readonly<Record<string, string>> = {
  aws: "access-key",
  azure: "client-secret",
  discord: "token",
  gcp: "service-account",
  github: "token",
  slack: "oauth2",
};

const variable = (type: string, key: string): string => `SVC_SECRET_${type}_${key}`.toUpperCase();

const bindings = Object.entries(SECRETS).map(([type, secret]) => ({
  name: type,
  type,
  auth: {
    type: AUTH[type],
    env: Object.fromEntries(Object.keys(secret).map((key) => [key, variable(type, key)])),
  },
  config: {},
  policy: { allow: ["*"], deny: [], httpRules: [] },
  scope: {},
  audit: { enforcement: "enforce", logRequests: false },
}));
const secrets = Object.fromEntries(
  Object.entries(SECRETS).flatMap(([type, secret]) =>
    Object.entries(secret).map(([key, value]) => [variable(type, key), value]),
  ),
);

interface Memory {
  readonly rss: number;
  readonly pss: number;
}

/** MiB of a process, from proc_pid_smaps(5). */
function memoryOf(pid: number): Memory {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const field = (name: string): number =>
    Number(new RegExp(`^${name}: +(\\d+) kB`, "m").exec(text)?.[1] ?? Number.NaN) / 1024;
  return { rss: field("Rss"), pss: field("Pss") };
}

async function round(): Promise<readonly Memory[]> {
  const google = new GoogleServer(EMAIL, createPublicKey(privateKey));
  const azure = new AzureServer(AZURE);
  const slack = new SlackServer(SLACK);
  const outside = await Outside.start([
    "oauth2.googleapis.com",
    "login.microsoftonline.com",
    "slack.com",
  ]);
  outside.handler = (request, response) =>
    (request.host.startsWith("oauth2.")
      ? google
      : request.host === "slack.com"
        ? slack
        : azure
    ).serve(request, response);
  const sidecar = await Sidecar.start({
    outside,
    bindings,
    secrets,
    options: { pollMs: 30_000 },
  });
  try {
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    if (google.issued.size + azure.issued.size + slack.issued.size !== 3)
      throw new Error(`not every token was exchanged: ${sidecar.logs}`);
    const { service, envoy } = sidecar.pids;
    return [memoryOf(service), memoryOf(envoy)];
  } finally {
    await sidecar.stop();
    await outside.close();
  }
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

const rounds: (readonly Memory[])[] = [];
for (let left = Number(process.argv[2] ?? 3); left > 0; left--) {
  const figures = await round();
  rounds.push(figures);
  process.stdout.write(`${line(figures)}\n`);
}
const medians = [0, 1].map((i) => ({
  rss: median(rounds.map((each) => each[i]?.rss ?? 0)),
  pss: median(rounds.map((each) => each[i]?.pss ?? 0)),
}));
process.stdout.write(`median: ${line(medians)}\n`);

function line(figures: readonly Memory[]): string {
  const total = figures.reduce((sum, { rss }) => sum + rss, 0);
  const parts = figures.map(
    ({ rss, pss }, i) =>
      `${i === 0 ? "service" : "Envoy"} ${rss.toFixed(1)} (PSS ${pss.toFixed(1)})`,
  );
  return `${parts.join(", ")}, together ${total.toFixed(1)} MiB`;
}
