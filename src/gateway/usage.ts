/** Today's usage of objects, for their status, from the counters that all replicas share. */
import type { AccountUsage, Limits, Subject } from "../limits/contract.ts";
import {
  AGENT_ACCOUNT,
  agentScope,
  externalScope,
  keyAccount,
  PROVIDER_ACCOUNT,
} from "../limits/subject.ts";
import { keyOf } from "../resources/metadata.ts";
import { resourceId, type ResourceSet } from "../resources/resource-set.ts";
import type { ObjectStatus } from "../policy/status.ts";
import type { ObjectUsage, UsageOf } from "./objects.ts";

export function usageFrom(limits: Limits, resources: () => ResourceSet): UsageOf {
  return async (objects) => {
    const set = resources();
    const counted = objects.flatMap((object) => {
      const subject = subjectOf(object, set);
      return subject === undefined ? [] : [{ object, subject }];
    });
    const usages = await limits.usage(counted.map(({ subject }) => subject));
    return new Map(
      counted.map(({ object }, i) => [
        resourceId(object),
        shown(object, usages[i] as AccountUsage),
      ]),
    );
  };
}

function subjectOf(object: ObjectStatus, resources: ResourceSet): Subject | undefined {
  switch (object.kind) {
    case "Agent":
      return { scope: agentScope(object.namespace, object.name), account: AGENT_ACCOUNT };
    case "ModelProvider":
      return { scope: externalScope(keyOf(object)), account: PROVIDER_ACCOUNT };
    case "AccessKey": {
      const provider = resources.accessKeys.get(keyOf(object))?.spec.modelProvider;
      if (provider === undefined) return undefined;
      return {
        scope: externalScope(`${object.namespace}/${provider}`),
        account: keyAccount(object.name),
      };
    }
    case "Provider":
    case "Secret":
      return undefined;
  }
}

/**
 * Money is counted in whole micro-dollars: as a decimal it has six places, and is only for display.
 */
function shown({ kind }: ObjectStatus, usage: AccountUsage): ObjectUsage {
  const { tokens, requests, microUsd, unpricedRequests, inFlight } = usage;
  const counts = { tokensToday: tokens, requestsToday: requests };
  if (kind === "ModelProvider") return counts;
  return {
    ...counts,
    costTodayUSD: microUsd / 1_000_000,
    ...(unpricedRequests > 0 && { unpricedToday: unpricedRequests }),
    inFlight,
  };
}
