/** The action categories and resources of a part of a GraphQL document. */
import type { ServiceResource } from "../../contract.ts";
import { unscopable } from "../repository.ts";

/** The document cannot be evaluated. */
export class Unjudged extends Error {
  override readonly name = "Unjudged";
  readonly hint: string;

  constructor(reason: string, hint: string) {
    super(reason);
    this.hint = hint;
  }
}

/** Collects categories and resources during the walk of one root field. */
export class Touched {
  readonly categories = new Set<string>();
  readonly resources: ServiceResource[];
  #outside = false;

  constructor(resources: readonly ServiceResource[]) {
    this.resources = [...resources];
  }

  category(category: string): void {
    if (category !== "") this.categories.add(category);
  }

  /** Notes a field that leads out of its repository. */
  leaves(path: string): void {
    if (this.#outside) return;
    this.#outside = true;
    this.resources.push(unscopable(`${path} leads to more than the repository asked for`));
  }
}
