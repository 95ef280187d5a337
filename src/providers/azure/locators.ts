/**
 * Finds every place that a body or a parameter of Resource Manager names: resources by their ids,
 * storage accounts, vaults and registries by their addresses, and subscriptions and groups by their
 * members' names. Scripts and images are not examined: they act as the machine that runs them.
 */
import type { ServiceResource } from "../contract.ts";
import { isJsonObject, jsonMembers, type StrictJson } from "../strict-json.ts";
import { placeOf, type AzurePlaces, unscopable, within } from "./resources.ts";

/** Maximum number of places that are evaluated individually. */
const MAX_PLACES = 200;

/** Represents a whole subscription; not a valid name of a group. */
const WHOLE_SUBSCRIPTION = "*";

export class Locators {
  readonly #places: AzurePlaces;
  /** The path's subscription; a body that only repeats it names nothing new. */
  readonly #own: string | undefined;
  readonly #found = new Map<string, ServiceResource>();

  constructor(places: AzurePlaces, ownSubscription: string | undefined) {
    this.#places = places;
    this.#own = ownSubscription?.toLowerCase();
  }

  get resources(): readonly ServiceResource[] {
    return this.#found.size > MAX_PLACES
      ? [unscopable("the request names too many resources")]
      : [...this.#found.values()];
  }

  addDocument(document: StrictJson): void {
    for (const { key, value } of jsonMembers(document)) {
      if (this.#found.size > MAX_PLACES) return;
      if (typeof value === "string") this.addText(value);
      // Some maps have ids as keys, such as userAssignedIdentities.
      else if (isJsonObject(value)) {
        for (const name of Object.keys(value)) if (name.includes("/")) this.addText(name);
        this.#addMembers(value);
      }
      if (/^managementgroups?(?:id|name)?$/i.test(key)) this.#addWider();
    }
  }

  /** Finds names in a text; in prose, which contains spaces, only at its beginning. */
  addText(text: string): void {
    const trimmed = text.trimStart();
    if (/\s/.test(trimmed) && !/^\/|^https?:\/\//i.test(trimmed)) return;
    if (!MAY_LOCATE.test(trimmed)) return;
    this.#addNames(trimmed);
    const decoded = decodedOnce(trimmed);
    if (decoded !== trimmed) this.#addNames(decoded);
  }

  #addNames(text: string): void {
    for (const [, subscription = "", group] of text.matchAll(RESOURCE_ID)) {
      if (this.#found.size > MAX_PLACES) return;
      this.#addPlace(subscription, group);
    }
    for (const [, account = ""] of text.matchAll(ACCOUNT_HOST)) {
      if (this.#found.size > MAX_PLACES) return;
      this.#add(placeOf(account.toLowerCase(), this.#places));
    }
    if (MANAGEMENT_GROUP.test(text)) this.#addWider();
    if (UNPLACED_HOST.test(text))
      this.#add([unscopable("the request names a service whose place nobody knows")]);
  }

  /** `subscriptionId` and `resourceGroupName`, which are siblings. */
  #addMembers(value: { readonly [key: string]: StrictJson }): void {
    let subscription: string | undefined;
    const groups: string[] = [];
    for (const [name, text] of Object.entries(value)) {
      if (typeof text !== "string" || text === "" || text.includes("/")) continue;
      if (/subscription_?ids?$/i.test(name)) subscription = text;
      else if (/resource_?group(?:_?name)?$/i.test(name)) groups.push(text);
    }
    const within = subscription ?? this.#own;
    if (within === undefined) {
      if (groups.length > 0) this.#addWider();
      return;
    }
    if (groups.length === 0 && subscription !== undefined) this.#addPlace(subscription, undefined);
    for (const group of groups) this.#addPlace(within, group);
  }

  #addPlace(subscription: string, group: string | undefined): void {
    const place = within(subscription, group);
    this.#add(place);
    if (group !== undefined || place.some(({ kind }) => kind === "unscopable")) return;
    if (subscription.toLowerCase() === this.#own) return;
    const whole = `${subscription}/${WHOLE_SUBSCRIPTION}`.toLowerCase();
    this.#add([{ kind: "scoped", key: "resourceGroups", value: whole }]);
  }

  #addWider(): void {
    this.#add([unscopable("the request names something wider than a subscription")]);
  }

  #add(resources: readonly ServiceResource[]): void {
    for (const resource of resources) {
      const key = resource.kind === "scoped" ? `${resource.key}=${resource.value}` : resource.kind;
      this.#found.set(key, resource);
    }
  }
}

/** A cheap filter, because most texts name no place. */
const MAY_LOCATE =
  /subscriptions(?:[\\/]|%2f)|\.windows\.net|\.azure\.net|\.azurecr\.io|managementGroups/i;
/** Doubled slashes and backslashes count as one slash. */
const RESOURCE_ID =
  /(?<![\w-])subscriptions[\\/]+([^\\/?#\s"']+)(?:[\\/]+resourceGroups[\\/]+([^\\/?#\s"']+))?/gi;
const MANAGEMENT_GROUP = /managementGroups\//i;
/** Storage accounts in all their services, vaults, and registries, by their own name. */
const ACCOUNT_HOST =
  /(?<![a-z0-9.-])([a-z0-9-]{3,50})\.(?:z[0-9]{1,2}\.)?(?:(?:blob|dfs|file|queue|table|web)\.core\.windows\.net|vault\.azure\.net|azurecr\.io)/gi;
const UNPLACED_HOST = /\.managedhsm\.azure\.net|(?<![a-z0-9-])(?:[a-z0-9-]{1,63}\.){2}azurecr\.io/i;

function decodedOnce(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
