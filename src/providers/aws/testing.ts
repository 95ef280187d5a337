/** Test helpers for AWS: a plugin instance, and a short form of its results. */
import type { ActionResolution, ServiceRequest } from "../contract.ts";
import { context } from "../testing.ts";
import { plugin } from "./plugin.ts";

export const ACCOUNT = "111122223333";
export const KEY = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};

export const aws = plugin.create(
  context({ authType: "access-key", secrets: KEY, config: { accountId: ACCOUNT } }),
);

/** Returns each action with its resources as lines; a reason in brackets if it is unresolved. */
export function told(request: ServiceRequest): readonly string[] {
  const resolution: ActionResolution = aws.resolveAction(request);
  if (resolution.kind !== "resolved") return [`(${resolution.reason})`];
  return resolution.actions.flatMap(({ action, resources }) =>
    resources.map(
      (resource) => `${action} ${resource.kind === "scoped" ? resource.value : resource.kind}`,
    ),
  );
}

export function isRefused(request: ServiceRequest): boolean {
  return aws.resolveAction(request).kind === "unresolved";
}
