/** Output of `svc up` when it serves. */
import type { GatewayStatus } from "../gateway/status.ts";
import { DEFAULT_NAMESPACE } from "../resources/metadata.ts";
import { quoteForShell } from "./shell.ts";
import { renderStatus } from "./status.ts";

export interface Greeting {
  readonly baseUrl: string;
  readonly externalUrl: string | undefined;
  readonly status: GatewayStatus;
  /** The agent for a first call; undefined if none is ready. */
  readonly trial: Trial | undefined;
}

export interface Trial {
  readonly namespace: string;
  readonly name: string;
  /** A model that the agent may use. */
  readonly model: string;
  readonly token: TokenSource;
}

/**
 * Source of the token in the printed command. A token is only shown on a terminal: other output is
 * stored in files, journals and pipelines.
 */
export type TokenSource =
  | { readonly kind: "shown"; readonly token: string }
  /** The words of a command that prints the token. */
  | { readonly kind: "asked"; readonly command: readonly string[] };

export function renderGreeting({ baseUrl, externalUrl, status, trial }: Greeting): string {
  const lines = [`LLM gateway   ${baseUrl}`];
  if (externalUrl !== undefined) lines.push(`External      ${externalUrl}/ext/v1`);
  lines.push(`Metrics       ${baseUrl}/metrics`, "", renderStatus(status), "");
  if (trial === undefined) lines.push("No Agent is ready: add one to the folder to get a token.");
  else
    lines.push(
      `Try it, as the agent ${trial.namespace}/${trial.name}:`,
      "",
      `  ${curl(baseUrl, trial)}`,
    );
  return `${lines.join("\n")}\n\n`;
}

/** @param program name under which svc was called @param stateDir folder, if it was named */
export function tokenCommand(
  program: string,
  agent: Pick<Trial, "namespace" | "name">,
  stateDir: string | undefined,
): readonly string[] {
  return [
    program,
    "token",
    agent.name,
    ...(agent.namespace === DEFAULT_NAMESPACE ? [] : ["--namespace", agent.namespace]),
    ...(stateDir === undefined ? [] : ["--state-dir", stateDir]),
  ];
}

function curl(baseUrl: string, { model, token }: Trial): string {
  const bearer =
    token.kind === "shown"
      ? `'Authorization: Bearer ${token.token}'`
      : `"Authorization: Bearer $(${token.command.map(quoteForShell).join(" ")})"`;
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] });
  return (
    `curl ${baseUrl}/v1/chat/completions -H ${bearer} -H 'Content-Type: application/json' -d ` +
    quoteForShell(body)
  );
}
