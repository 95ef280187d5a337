/**
 * Runs a coding agent as its users do: unmodified, with a home of its own, pointed at the gateway
 * by the settings of docs/agents.md.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { ROOT } from "../build.ts";

export interface AgentTask {
  readonly baseUrl: string;
  readonly token: string;
  /** `<provider>/<model>`. */
  readonly model: string;
  readonly prompt: string;
}

export interface AgentResult {
  readonly code: number | null;
  readonly output: string;
  /** Contents of `turns.txt` in the agent's folder; empty if there is none. */
  readonly turns: string;
}

interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Files in the agent's home. */
  readonly home?: Readonly<Record<string, string>>;
  /** Files in its working folder. */
  readonly work?: Readonly<Record<string, string>>;
}

/** How each agent is pointed at the gateway: see docs/agents.md. */
export const AGENTS: Readonly<Record<string, (task: AgentTask) => Launch>> = {
  gemini: ({ baseUrl, token, model, prompt }) => ({
    command: "gemini",
    args: ["--yolo", "--skip-trust", "--model", model, "--prompt", prompt],
    env: { GEMINI_API_KEY: token, GOOGLE_GEMINI_BASE_URL: baseUrl },
    home: {
      ".gemini/settings.json": JSON.stringify({
        security: { auth: { selectedType: "gemini-api-key" } },
        general: { disableAutoUpdate: true },
      }),
    },
  }),
  opencode: ({ baseUrl, token, model, prompt }) => ({
    command: "opencode",
    args: ["run", prompt],
    env: { SVC_TOKEN: token },
    work: {
      "opencode.json": JSON.stringify({
        autoupdate: false,
        permission: { bash: "allow" },
        provider: {
          svc: {
            npm: "@ai-sdk/openai-compatible",
            options: { baseURL: `${baseUrl}/v1`, apiKey: "{env:SVC_TOKEN}" },
            models: { [model]: {} },
          },
        },
        model: `svc/${model}`,
        small_model: `svc/${model}`,
      }),
    },
  }),
  codex: ({ baseUrl, token, model, prompt }) => ({
    command: "codex",
    args: ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt],
    env: { SVC_TOKEN: token },
    home: {
      ".codex/config.toml": [
        `model = "${model}"`,
        'model_provider = "svc"',
        "[model_providers.svc]",
        'name = "Svc"',
        `base_url = "${baseUrl}/v1"`,
        'env_key = "SVC_TOKEN"',
        'wire_api = "responses"',
        "",
      ].join("\n"),
    },
  }),
};

/** Runs an agent to its end, in a folder that is removed afterwards. */
export async function runAgent(name: string, task: AgentTask): Promise<AgentResult> {
  const launch = AGENTS[name]?.(task);
  if (launch === undefined) throw new Error(`no agent ${name}`);
  const dir = mkdtempSync(path.join(os.tmpdir(), `svc-agent-${name}-`));
  const [home, work] = [path.join(dir, "home"), path.join(dir, "work")];
  try {
    write(home, launch.home ?? {});
    write(work, launch.work ?? {});
    const child = spawn(
      path.join(ROOT, ".venv/agents/node_modules/.bin", launch.command),
      launch.args,
      {
        cwd: work,
        env: { PATH: process.env["PATH"], HOME: home, TERM: "xterm-256color", ...launch.env },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    let output = "";
    child.stdout.on("data", (part: Buffer) => (output += part.toString()));
    child.stderr.on("data", (part: Buffer) => (output += part.toString()));
    const code = await new Promise<number | null>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", resolve);
    });
    const turns = path.join(work, "turns.txt");
    return { code, output, turns: existsSync(turns) ? readFileSync(turns, "utf8") : "" };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function write(dir: string, files: Readonly<Record<string, string>>): void {
  mkdirSync(dir, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(dir, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}
