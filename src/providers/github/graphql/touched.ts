/** What a part of a GraphQL document touches: categories of actions, and resources. */
import type { Resource } from "../../contract.ts";
import { unscopable } from "../repository.ts";

/** The document cannot be judged. */
export class Unjudged extends Error {
  override readonly name = "Unjudged";
  readonly hint: string;

  constructor(reason: string, hint: string) {
    super(reason);
    this.hint = hint;
  }
}

/** Collects, while the fields below one field of the root are walked. */
export class Touched {
  readonly categories = new Set<string>();
  readonly resources: Resource[];
  #outside = false;

  constructor(resources: readonly Resource[]) {
    this.resources = [...resources];
  }

  category(category: string): void {
    if (category !== "") this.categories.add(category);
  }

  /** A field leads out of the repository where it began. */
  leaves(path: string): void {
    if (this.#outside) return;
    this.#outside = true;
    this.resources.push(unscopable(`${path} leads to more than the repository asked for`));
  }
}
