/** Subscriptions and resource groups in the form of `spec.scope`. */
import type { ServiceResource } from "../contract.ts";

/** Configured places of storage accounts and vaults: `<subscription>/<group>` by name. */
export type AzurePlaces = ReadonlyMap<string, string>;

export const SUBSCRIPTION = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Azure's rule; a name may not end in a dot. */
export const GROUP = /^[\p{L}\p{N}_().-]{0,89}[\p{L}\p{N}_()-]$/u;

export function unscopable(reason: string): ServiceResource {
  return { kind: "unscopable", reason };
}

export function within(
  subscription: string,
  group: string | undefined,
): readonly ServiceResource[] {
  if (!SUBSCRIPTION.test(subscription)) return [unscopable("the subscription is no id")];
  const found: ServiceResource[] = [
    { kind: "scoped", key: "subscriptions", value: subscription.toLowerCase() },
  ];
  if (group === undefined) return found;
  return GROUP.test(group)
    ? [
        ...found,
        { kind: "scoped", key: "resourceGroups", value: `${subscription}/${group}`.toLowerCase() },
      ]
    : [unscopable("the resource group has no name that Azure allows")];
}

export function placeOf(account: string, places: AzurePlaces): readonly ServiceResource[] {
  const [subscription, group] = places.get(account)?.split("/") ?? [];
  return subscription === undefined
    ? [
        {
          kind: "unscopable",
          reason:
            "the host does not tell the subscription: list it in config.places of the Provider",
          // A container is identified by its account, wherever that is.
          keys: ["subscriptions", "resourceGroups"],
        },
      ]
    : within(subscription, group);
}
