/**
 * What callers may use of an MCP server: its tools, prompts and resources. Lists of the Provider
 * come first, its denials before its permissions; those of an access key only narrow them.
 */
import { compileWildcard } from "../../platform/glob.ts";
import type { ItemLists, McpLists } from "../../policy/snapshot.ts";
import { fold, formsOfUri, isPlain } from "./item-name.ts";
import type { ItemKind } from "./names.ts";

export const NO_LISTS: ItemLists = { allowed: undefined, denied: [] };

/** Why an item may not be used. */
export type ItemDenial = "denied" | "not-allowed" | "unclear-name";

interface ItemRules {
  deny(name: string): ItemDenial | undefined;
}

/** McpPolicy is the lists of a Provider and of an access key, compiled. */
export class McpPolicy {
  readonly #rules: Readonly<Record<ItemKind, readonly ItemRules[]>>;

  /** @param lists of the Provider, then of the key */
  constructor(...lists: readonly McpLists[]) {
    const rules = (kind: ItemKind): readonly ItemRules[] =>
      lists
        .map((one) => one[kind])
        .filter(({ allowed, denied }) => allowed !== undefined || denied.length > 0)
        .map(kind === "resources" ? uriRules : nameRules);
    this.#rules = {
      tools: rules("tools"),
      prompts: rules("prompts"),
      resources: rules("resources"),
    };
  }

  /** Returns whether every item of a kind may be used, so that nothing need be read. */
  isOpen(kind: ItemKind): boolean {
    return this.#rules[kind].length === 0;
  }

  /** Returns why an item may not be used; undefined if it may. */
  deny(kind: ItemKind, name: string): ItemDenial | undefined {
    for (const rules of this.#rules[kind]) {
      const denial = rules.deny(name);
      if (denial !== undefined) return denial;
    }
    return undefined;
  }
}

/**
 * Names are allowed if they are equal to an entry, byte for byte. They are denied if they merely
 * resemble one, since a server may be tolerant; and where anything is denied, a name with other
 * characters than printable ASCII, which could look like a denied one, must be allowed by name.
 */
function nameRules({ allowed, denied }: ItemLists): ItemRules {
  const exact = allowed === undefined ? undefined : new Set(allowed);
  const forbidden = new Set(denied.map(fold));
  return {
    deny(name) {
      if (forbidden.has(fold(name))) return "denied";
      if (exact !== undefined) return exact.has(name) ? undefined : "not-allowed";
      return isPlain(name) ? undefined : "unclear-name";
    },
  };
}

/** A URI must be allowed in every form in which a server might read it, and denied in none. */
function uriRules({ allowed, denied }: ItemLists): ItemRules {
  const exact = { ignoreCase: false };
  const allow = allowed?.map((pattern) => compileWildcard(pattern, exact));
  const forbid = denied.map((pattern) => compileWildcard(fold(pattern), exact));
  return {
    deny(uri) {
      const forms = formsOfUri(uri);
      if (forms.some((form) => forbid.some((matches) => matches(fold(form))))) return "denied";
      if (allow === undefined) return undefined;
      return forms.every((form) => allow.some((matches) => matches(form)))
        ? undefined
        : "not-allowed";
    },
  };
}
