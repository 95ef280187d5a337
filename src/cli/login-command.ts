/** `svc login` and `svc logout`. */
import { Command } from "commander";
import { isAccessKey, unwrapAccessKey } from "../access/access-keys.ts";
import { nameSchema } from "../resources/metadata.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";
import { configFile, removeKey, removeLogins, storeLogin } from "./login-store.ts";
import { readSecret } from "./secret-input.ts";
import { plain } from "./table.ts";

interface Flags {
  readonly accessKey?: string;
  readonly accessKeyFile?: string;
  readonly name?: string;
}

const VERIFY_TIMEOUT_MS = 15_000;
/** Maximum number of characters of another server's message. */
const MAX_SAID = 300;

export function loginCommand(context: Context): Command {
  return new Command("login")
    .description(
      "Store the address of an external gateway and an AccessKey, after the gateway has " +
        "accepted the key.",
    )
    .argument("<base_url>", "address of the external gateway")
    .option(
      "--access-key <key>",
      "the AccessKey, raw or wrapped; - reads it from standard input. As a flag, other " +
        "users of this machine can see it: prefer -, or --access-key-file",
    )
    .option("--access-key-file <file>", "file that holds the AccessKey")
    .option(
      "--name <key-name>",
      "store it beside the login, under this name of the AccessKey: see svc gateway mcp",
    )
    .addHelpText(
      "after",
      `
The key is asked for where no flag gives it and there is a terminal. It is kept in $XDG_CONFIG_HOME/svc/config.yaml
(default ~/.config/svc/config.yaml), readable by this user alone.

Examples:
  svc login https://gateway.example.com
  svc access-key create --name me --model-provider openai | svc login http://127.0.0.1:8080 --access-key -`,
    )
    .action(async (text: string, flags: Flags) => {
      const baseURL = gatewayBase(text);
      if (flags.name !== undefined && !nameSchema.safeParse(flags.name).success)
        throw CliError.usage(`--name '${flags.name}' is not the name of an AccessKey`);
      const given = await readSecret(
        {
          flag: "--access-key",
          value: flags.accessKey,
          file: flags.accessKeyFile,
          question: "AccessKey (not shown): ",
        },
        context,
      );
      if (given === undefined)
        throw CliError.usage("an AccessKey is needed: --access-key -, or --access-key-file <file>");
      const accessKey = unwrapAccessKey(given.reveal());
      if (!isAccessKey(accessKey))
        throw new CliError(
          "this is not an AccessKey, which is svc_ and 43 letters and digits, as printed " +
            "by svc access-key create",
        );
      if (isClear(baseURL))
        context.stderr(
          `svc: ${baseURL} is not encrypted: anybody on the network path can read the key. ` +
            "Use https if possible.\n",
        );
      const models = await verify(context.fetch, baseURL, accessKey);
      await storeLogin(configFile(context.env), { baseURL, accessKey }, flags.name);
      if (flags.name !== undefined)
        return context.stderr(
          `Stored the AccessKey ${flags.name} for ${baseURL}. Next: svc gateway mcp <provider> ` +
            `--key ${flags.name}\n`,
        );
      context.stderr(
        `Logged in at ${baseURL}` +
          (models === undefined ? "" : `, with ${models} ${models === 1 ? "model" : "models"}`) +
          `. Next: eval "$(svc gateway env)"\n`,
      );
    });
}

export function logoutCommand(context: Context): Command {
  return new Command("logout")
    .description(
      "Delete everything that svc login stored. The key itself stays valid: revoke it where " +
        "it was created.",
    )
    .option("--name <key-name>", "delete only the key that was stored under this name")
    .addHelpText("after", "\nExample:\n  svc logout")
    .action(async ({ name }: { readonly name?: string }) => {
      const file = configFile(context.env);
      if (name !== undefined) {
        const removed = await removeKey(file, name);
        return context.stderr(
          removed ? `Deleted the AccessKey ${name}.\n` : `No AccessKey ${name} was stored.\n`,
        );
      }
      const removed = await removeLogins(file);
      context.stderr(removed ? "Logged out.\n" : "Nobody was logged in.\n");
    });
}

/** Returns a base URL without the paths that clients append. @throws CliError, a usage error */
export function gatewayBase(text: string): string {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw CliError.usage(
      `'${text.includes("@") ? "the base URL" : text}' is not the address of a gateway: ` +
        "one is https://gateway.example.com",
    );
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    throw CliError.usage("the base URL must not hold a user, a password, a query or a fragment");
  const path = url.pathname.replace(/(?<!\/)\/+$/, "").replace(/\/ext(?:\/v1)?$/, "");
  return `${url.origin}${path}`;
}

/** Returns whether a URL is neither encrypted nor on this machine. */
function isClear(baseURL: string): boolean {
  const { protocol, hostname } = new URL(baseURL);
  return (
    protocol === "http:" &&
    hostname !== "localhost" &&
    hostname !== "[::1]" &&
    !/^127(?:\.\d+){3}$/.test(hostname)
  );
}

/**
 * @returns the number of models that the key may use; undefined if the gateway does not return it
 * @throws CliError
 */
async function verify(
  fetcher: typeof fetch,
  baseURL: string,
  accessKey: string,
): Promise<number | undefined> {
  const url = `${baseURL}/ext/v1/models`;
  let response: Response;
  try {
    // A redirect would send the key to another server.
    response = await fetcher(url, {
      headers: { authorization: `Bearer ${accessKey}` },
      redirect: "manual",
      signal: AbortSignal.timeout(VERIFY_TIMEOUT_MS),
    });
  } catch (error) {
    throw new CliError(`${baseURL} does not answer: ${reasonOf(error)}`);
  }
  const body = (await response.json().catch(() => undefined)) as
    | { data?: unknown[]; error?: { message?: unknown } }
    | undefined;
  if (response.status === 200 && Array.isArray(body?.data)) return body.data.length;
  const said =
    typeof body?.error?.message === "string"
      ? `: ${plain(body.error.message).slice(0, MAX_SAID)}`
      : "";
  if (response.status === 401 || response.status === 403)
    throw new CliError(`the gateway refused the AccessKey (${response.status})${said}`);
  if (response.status === 200 || response.status === 404)
    throw new CliError(
      `${url} is not an external gateway of svc (${response.status}): is the base URL right?`,
    );
  if (response.status >= 300 && response.status < 400)
    throw new CliError(
      `${baseURL} redirects to another address, to which the key is not sent: log in at ` +
        "that address",
    );
  throw new CliError(`the gateway could not check the AccessKey (${response.status})${said}`);
}

function reasonOf(error: unknown): string {
  if (error instanceof DOMException && error.name === "TimeoutError")
    return `nothing within ${VERIFY_TIMEOUT_MS / 1_000} s`;
  const { cause, message } = error as {
    readonly cause?: { readonly code?: string; readonly message?: string };
    readonly message: string;
  };
  return plain(cause?.code ?? cause?.message ?? message).slice(0, MAX_SAID);
}
