/** Resolves a reference to a Secret to its value, or to the reason why there is none. */
import { Secret } from "../platform/secret.ts";
import type { Reason } from "../policy/status.ts";
import type { ResourceSet } from "../resources/resource-set.ts";
import type { SecretSource } from "../resources/secret.ts";

export type Env = Readonly<Record<string, string | undefined>>;

export type SecretResult =
  | { readonly kind: "ok"; readonly secret: Secret }
  | { readonly kind: "missing"; readonly reason: Reason; readonly message: string };

/** Environment variables contain text; an empty one counts as unset. */
export function isEnvSet(env: Env, variable: string): boolean {
  return (env[variable] ?? "") !== "";
}

export function resolveSecret(
  resources: ResourceSet,
  env: Env,
  namespace: string,
  ref: { readonly name: string; readonly key: string },
): SecretResult {
  const label = `Secret ${namespace}/${ref.name}`;
  const secret = resources.secrets.get(`${namespace}/${ref.name}`);
  if (secret === undefined) return missing("SecretDoesNotExist", `${label} does not exist`);
  if (secret.whenEnv !== undefined && !isEnvSet(env, secret.whenEnv)) {
    return missing(
      "SecretDoesNotExist",
      `${label} is skipped: environment variable ${secret.whenEnv} is not set`,
    );
  }
  const source = secret.values.get(ref.key);
  if (source === undefined)
    return missing("SecretKeyDoesNotExist", `${label} has no key ${ref.key}`);
  const value = valueOf(source, env);
  if (value === undefined) {
    return missing(
      "EnvironmentVariableNotSet",
      `${label} takes key ${ref.key} from environment variable ${variableOf(source)}, ` +
        "which is not set",
    );
  }
  // A final newline comes from `echo key | base64` and similar commands; it is never part of an API
  // key.
  const text = value.reveal().replace(/(?<![\r\n])[\r\n]+$/, "");
  if (!/^[\x21-\x7e]+(?: +[\x21-\x7e]+)*$/.test(text)) {
    return missing(
      "SecretValueInvalid",
      `${label} key ${ref.key} is empty, or holds characters that cannot be sent in a header`,
    );
  }
  return { kind: "ok", secret: text === value.reveal() ? value : new Secret(text) };
}

/** Returns the value of a source; undefined if its variable is not set and it has no default. */
export function valueOf(source: SecretSource, env: Env): Secret | undefined {
  if (source.kind === "value") return source.value;
  return isEnvSet(env, source.variable) ? new Secret(env[source.variable] ?? "") : source.fallback;
}

export function variableOf(source: SecretSource): string {
  return source.kind === "env" ? source.variable : "";
}

function missing(reason: Reason, message: string): SecretResult {
  return { kind: "missing", reason, message };
}
