/** Certificates and tokens change under load without failures. */
import { generateKeyPairSync } from "node:crypto";
import https from "node:https";
import tls from "node:tls";
import { describe, expect, test } from "vitest";
import { Outside } from "../support/services.ts";
import { Sidecar } from "../support/sidecar.ts";
import { until } from "../support/wait.ts";

const HOSTS = [
  "api.github.com",
  "github.com",
  "uploads.github.com",
  "codeload.github.com",
  "raw.githubusercontent.com",
];

const github = (auth: object): object => ({
  name: "github",
  type: "github",
  auth,
  config: {},
  policy: { deny: [], httpRules: [] },
  scope: {},
  audit: { enforcement: "enforce", logRequests: false },
});

/** One request on a connection of its own, by a client that has just read its bundle. */
function fresh(sidecar: Sidecar): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = https.request(
      {
        host: "127.0.0.1",
        port: sidecar.httpsPort,
        servername: "api.github.com",
        ca: sidecar.bundle,
        agent: false,
        path: "/repos/o/r/pulls",
        headers: { host: "api.github.com" },
      },
      (response) => {
        response.resume();
        response.on("end", () => resolve(response.statusCode ?? 0));
      },
    );
    sent.on("error", reject);
    sent.end();
  });
}

/** Fingerprints of the leaf, and of the published authorities. */
async function certificates(
  sidecar: Sidecar,
): Promise<{ readonly leaf: string; readonly authorities: number; readonly authority: string }> {
  const socket = tls.connect({
    host: "127.0.0.1",
    port: sidecar.httpsPort,
    servername: "api.github.com",
    ca: sidecar.bundle,
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("secureConnect", () => resolve());
    socket.once("error", reject);
  });
  const leaf = socket.getPeerCertificate().fingerprint256;
  socket.destroy();
  const own = sidecar.authorities;
  return { leaf, authorities: own.length, authority: own.at(-1) ?? "" };
}

test("leaves and the authority rotate, and no handshake fails", { timeout: 300_000 }, async () => {
  const outside = await Outside.start(HOSTS);
  const sidecar = await Sidecar.start({
    outside,
    bindings: [github({ type: "token", env: { token: "SVC_SECRET_GITHUB_TOKEN" } })],
    secrets: { SVC_SECRET_GITHUB_TOKEN: "ghp_x" },
    options: { certificates: { authorityMs: 9_000, leafMs: 3_000, slackMs: 1_000 } },
  });
  let running = true;
  try {
    const statuses: Record<string, number> = {};
    const going = (): boolean => running;
    const worker = async (): Promise<void> => {
      while (going()) {
        const outcome = await fresh(sidecar).catch((error: unknown) => String(error));
        statuses[outcome] = (statuses[outcome] ?? 0) + 1;
      }
    };
    const workers = [worker(), worker(), worker()];
    const first = await certificates(sidecar);
    const leaves = new Set<string>();
    const authorities = new Set<string>([first.authority]);
    await until(
      async () => {
        const now = await certificates(sidecar);
        leaves.add(now.leaf);
        authorities.add(now.authority);
        return leaves.size >= 4 && authorities.size >= 3;
      },
      { what: "several leaves, and two new authorities" },
    );
    running = false;
    await Promise.all(workers);
    expect(Object.keys(statuses)).toEqual(["200"]);
    expect(statuses["200"]).toBeGreaterThan(20);
  } finally {
    running = false;
    await sidecar.stop();
    await outside.close();
  }
});

/** For a token: renewed well before. */
const LIFE_MS = 12_000;

describe("tokens", () => {
  const { privateKey } = generateKeyPairSync("rsa", {
    modulusLength: 2048,
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });

  test(
    "are renewed under load; while the token server is away the old one serves to its end",
    { timeout: 300_000 },
    async () => {
      const outside = await Outside.start(HOSTS);
      let issued = 0;
      let away = false;
      let refusals = 0;
      outside.handler = ({ url }, response) => {
        if (!url.endsWith("/access_tokens")) {
          response.writeHead(200);
          return void response.end("{}");
        }
        if (away) {
          refusals += 1;
          response.writeHead(503);
          return void response.end("{}");
        }
        issued += 1;
        response.writeHead(201, { "content-type": "application/json" });
        response.end(
          JSON.stringify({
            token: `ghs_token_${issued}`,
            expires_at: new Date(Date.now() + LIFE_MS).toISOString(),
          }),
        );
      };
      const sidecar = await Sidecar.start({
        outside,
        bindings: [
          github({ type: "app", env: { appId: "A", installationId: "I", privateKey: "K" } }),
        ],
        secrets: { A: "1", I: "2", K: privateKey },
      });
      let running = true;
      try {
        const statuses: Record<string, number> = {};
        const going = (): boolean => running;
        const worker = async (): Promise<void> => {
          while (going()) {
            const outcome = await fresh(sidecar).catch((error: unknown) => String(error));
            statuses[outcome] = (statuses[outcome] ?? 0) + 1;
          }
        };
        const workers = [worker(), worker()];
        const used = (): Set<string> =>
          new Set(
            outside.requests.flatMap(({ url, headers }) =>
              url.endsWith("/access_tokens") ? [] : [headers.authorization ?? ""],
            ),
          );
        await until(() => used().size >= 2, {
          what: "a second token to be in use",
        });
        away = true;
        await until(() => refusals >= 1, {
          what: "the token server to be asked in vain",
        });
        const before = outside.requests.length;
        await until(() => outside.requests.length > before + 20, {
          what: "more calls with the old token",
        });
        away = false;
        const tokens = used().size;
        await until(() => used().size > tokens, { what: "the next token" });
        running = false;
        await Promise.all(workers);
        expect(Object.keys(statuses)).toEqual(["200"]);
        for (const authorization of used()) expect(authorization).toMatch(/ghs_token_\d+$/);
      } finally {
        running = false;
        await sidecar.stop();
        await outside.close();
      }
    },
  );
});
