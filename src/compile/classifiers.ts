/** The classifier of a GuardBinding: its address, and the header with its secret. Pure. */
import { createHash } from "node:crypto";
import { Secret } from "../platform/secret.ts";
import type { ClassifierPolicy } from "../policy/snapshot.ts";
import type { Reason } from "../policy/status.ts";
import { parseBaseURL } from "../resources/base-url.ts";
import type { GuardBinding } from "../resources/guard-binding.ts";
import type { ResourceSet } from "../resources/resource-set.ts";
import { type Env, resolveSecret } from "./policy-secrets.ts";

export interface ClassifierOptions {
  readonly env: Env;
  /** Base URL of the installation's guard service; undefined if none runs. */
  readonly guardEndpoint: string | undefined;
}

export interface CompiledClassifier {
  readonly policy: ClassifierPolicy;
  /** `Ready`, or the reason of the policy's `problem`. */
  readonly reason: Reason;
}

type Found<Value> =
  | { readonly kind: "ok"; readonly value: Value }
  | { readonly kind: "problem"; readonly reason: Reason; readonly message: string };

/** Compiles a classifier. One that cannot be asked has a problem; calls are then forwarded. */
export function compileClassifier(
  binding: GuardBinding,
  resources: ResourceSet,
  options: ClassifierOptions,
): CompiledClassifier {
  const { classifier } = binding.spec;
  const { type, model, endpoint } = classifier;
  // The guard service has a protocol of its own, whatever it asks itself.
  const protocol = type === "llamaGuard" && endpoint !== undefined ? "chat" : "classify";
  const url = urlOf(endpoint ?? options.guardEndpoint, protocol);
  const header = headerOf(binding, resources, options.env);
  const problem = [url, header].find((found) => found.kind === "problem");
  const known = url.kind === "ok" && header.kind === "ok";
  const policy: ClassifierPolicy = {
    id: idOf(binding, [
      type,
      protocol,
      url.kind === "ok" ? url.value : null,
      model ?? null,
      header.kind === "ok" && header.value !== undefined
        ? [header.value.name, header.value.value.reveal()]
        : null,
    ]),
    type,
    protocol,
    url: known ? url.value : undefined,
    model,
    header: known ? header.value : undefined,
    problem: problem?.kind === "problem" ? problem.message : undefined,
  };
  return { policy, reason: problem?.kind === "problem" ? problem.reason : "Ready" };
}

/** The version of the binding is part of it, so that an edit drops every verdict. */
function idOf({ namespace, name, version }: GuardBinding, parts: readonly unknown[]): string {
  return createHash("sha256")
    .update(JSON.stringify([namespace, name, version, ...parts]))
    .digest("hex");
}

const SUFFIX = { classify: "/classify", chat: "/chat/completions" } as const;

function urlOf(base: string | undefined, protocol: ClassifierPolicy["protocol"]): Found<string> {
  if (base === undefined)
    return {
      kind: "problem",
      reason: "GuardServiceNotAvailable",
      message:
        "spec.classifier.endpoint is not set, and the installation has no guard service: set " +
        "it, or start the service (Helm: guard.enabled=true; svc up: --guard <type>)",
    };
  // The schema has validated it; a resource created without the schema still cannot pass.
  const parsed = parseBaseURL(base);
  if (parsed.kind === "error")
    return {
      kind: "problem",
      reason: "InvalidSpec",
      message: `spec.classifier.endpoint ${parsed.message}`,
    };
  const url = new URL(base);
  const { basePath } = parsed.endpoint;
  const suffix = SUFFIX[protocol];
  url.pathname = basePath.endsWith(suffix) ? basePath : `${basePath}${suffix}`;
  return { kind: "ok", value: url.href };
}

function headerOf(
  { namespace, spec }: GuardBinding,
  resources: ResourceSet,
  env: Env,
): Found<ClassifierPolicy["header"]> {
  const { auth } = spec.classifier;
  if (auth === undefined) return { kind: "ok", value: undefined };
  const { header: name, prefix, secretRef, secretKey: key } = auth;
  const found = resolveSecret(resources, env, namespace, { name: secretRef, key });
  if (found.kind === "missing")
    return {
      kind: "problem",
      reason: found.reason,
      message: `spec.classifier.auth: ${found.message}`,
    };
  const value = new Secret(`${prefix}${found.secret.reveal()}`);
  return { kind: "ok", value: { name, value } };
}
