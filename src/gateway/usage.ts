/** Today's usage of objects, for their status, from the counters that all replicas share. */
import type { AccountUsage, Limits, Subject } from "../limits/contract.ts";
import {
  AGENT_ACCOUNT,
  agentScope,
  externalScope,
  externalServiceScope,
  keyAccount,
  PROVIDER_ACCOUNT,
} from "../limits/subject.ts";
import type { ObjectStatus } from "../policy/status.ts";
import { KINDS, resourceId, type ResourceKind, usageCounterOf } from "../resources/kinds.ts";
import { keyOf } from "../resources/metadata.ts";
import { findResource, type ResourceSet } from "../resources/resource-set.ts";
import type { ObjectUsage, UsageCounter } from "../resources/usage.ts";
import type { UsageOf } from "./objects.ts";

export function usageFrom(limits: Limits, resources: () => ResourceSet): UsageOf {
  return async (objects) => {
    const set = resources();
    const counted = objects.flatMap((object) => {
      const counter = usageCounterOf(object.kind, findResource(set, object));
      return counter === undefined ? [] : [{ object, subject: subjectOf(object, counter) }];
    });
    const usages = await limits.usage(counted.map(({ subject }) => subject));
    return new Map(
      counted.map(({ object }, i) => [
        resourceId(object),
        shown(object.kind, usages[i] as AccountUsage),
      ]),
    );
  };
}

function subjectOf(object: ObjectStatus, counter: UsageCounter): Subject {
  switch (counter.kind) {
    case "agent":
      return { scope: agentScope(object.namespace, object.name), account: AGENT_ACCOUNT };
    case "model-provider":
      return { scope: externalScope(keyOf(object)), account: PROVIDER_ACCOUNT };
    case "provider":
      return { scope: externalServiceScope(keyOf(object)), account: PROVIDER_ACCOUNT };
    case "access-key":
      return {
        scope:
          "provider" in counter
            ? externalServiceScope(`${object.namespace}/${counter.provider}`)
            : externalScope(`${object.namespace}/${counter.modelProvider}`),
        account: keyAccount(object.name),
      };
  }
}

/**
 * Returns the fields that a kind shows. Money is counted in whole micro-dollars: as a decimal it
 * has six places, and is only for display.
 */
function shown(kind: ResourceKind, usage: AccountUsage): ObjectUsage {
  const { tokens, requests, microUsd, unpricedRequests, inFlight } = usage;
  const all: ObjectUsage = {
    tokensToday: tokens,
    requestsToday: requests,
    costTodayUSD: microUsd / 1_000_000,
    ...(unpricedRequests > 0 && { unpricedToday: unpricedRequests }),
    inFlight,
  };
  const fields: ReadonlySet<string> = new Set(KINDS[kind].usage?.fields);
  return Object.fromEntries(
    Object.entries(all).filter(([name]) => fields.has(name)),
  ) as unknown as ObjectUsage;
}
