/**
 * Determines the repositories to which a search is restricted. `repo:a/b` restricts a search only
 * if nothing widens it again: `user:` and `org:` add to it, `OR` and parentheses make it one of
 * several alternatives. Therefore each word must be known to be harmless.
 * https://docs.github.com/search-github/searching-on-github/searching-issues-and-pull-requests
 */
import type { ServiceResource } from "../contract.ts";
import { namedRepository } from "./repository.ts";

/** Qualifiers that only narrow. */
const NARROWING = new Set(
  (
    "is state type author assignee mentions commenter involves label milestone no language " +
    "created updated closed merged " +
    "comments interactions reactions draft review reviewed-by review-requested " +
    "user-review-requested status head base in sort " +
    "path filename extension size linked archived locked reason hash tree parent " +
    "author-name author-email committer " +
    "committer-name committer-email author-date committer-date symbol content"
  ).split(" "),
);
const OPERATORS = new Set(["OR", "AND", "NOT"]);
const WORD = /(?:[^\s"]|"[^"]*")+/g;

/** @returns at least one repository, or undefined if the search is not certainly restricted */
export function searchScope(search: string): readonly ServiceResource[] | undefined {
  if (search.length > 4_096 || (search.match(/"/g)?.length ?? 0) % 2 === 1) return undefined;
  const repositories: ServiceResource[] = [];
  for (const word of search.match(WORD) ?? []) {
    if (OPERATORS.has(word.toUpperCase())) return undefined;
    const bare = word.replaceAll(/"[^"]*"/g, "");
    // `/` begins a regular expression, in which spaces and quotes do not end a word.
    if (/[()\\]|^-?\//.test(bare)) return undefined;
    const colon = bare.indexOf(":");
    if (colon < 0) continue;
    const qualifier = bare.slice(0, colon).toLowerCase();
    if (qualifier === "repo") {
      const repository = bare === word ? namedRepository(bare.slice(colon + 1)) : undefined;
      if (repository === undefined) return undefined;
      repositories.push(repository);
    } else if (!NARROWING.has(qualifier.replace(/^-/, ""))) return undefined;
  }
  return repositories.length === 0 ? undefined : repositories;
}
