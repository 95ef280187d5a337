// The pod of `helm test`: checks the gateway's readiness through its Service, and that the API server has svc.io/v1.
import { readFileSync } from "node:fs";
import https from "node:https";

const KINDS = process.env.KINDS.split(",");
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** @returns undefined when the gateway is ready; after a minute, the last failure */
async function gatewayReady() {
  const url = `${process.env.GATEWAY_URL}/readyz`;
  let failure = "";
  for (const end = Date.now() + 60_000; Date.now() < end;) {
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
      if (response.status === 200) return undefined;
      failure = `answered ${response.status}: ${(await response.text()).slice(0, 300)}`;
    } catch (error) {
      failure = String(error.cause ?? error);
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  return `${url} ${failure}. Look at the gateway: kubectl logs -n ${process.env.POD_NAMESPACE} deployment/${process.env.GATEWAY}`;
}

async function kindsServed() {
  const body = await new Promise((resolve, reject) => {
    const request = https.get(
      {
        host: process.env.KUBERNETES_SERVICE_HOST,
        port: process.env.KUBERNETES_SERVICE_PORT,
        path: "/apis/svc.io/v1",
        ca: readFileSync(`${SERVICE_ACCOUNT}/ca.crt`),
        headers: { authorization: `Bearer ${readFileSync(`${SERVICE_ACCOUNT}/token`, "utf8")}` },
      },
      async (response) => resolve((await response.toArray()).join("")),
    );
    request.on("error", reject);
  });
  const served = new Set((JSON.parse(body).resources ?? []).map(({ name }) => name));
  const missing = KINDS.filter((kind) => !served.has(kind));
  if (missing.length === 0) return undefined;
  return `the API server has no ${missing.join(", ")} in svc.io/v1. Install the CustomResourceDefinitions: crds.install=true`;
}

const failures = (await Promise.all([gatewayReady(), kindsServed()])).filter(Boolean);
for (const failure of failures) console.error(`FAILED: ${failure}`);
if (failures.length === 0) console.log("The gateway is ready, and the API server has every kind.");
process.exitCode = failures.length === 0 ? 0 : 1;
