/** The first error of a chain, and its place. */
export interface FaultPlace {
  /** Name of the file in the chain's folder. */
  readonly file: string;
  readonly line?: number | undefined;
  readonly seq?: number | undefined;
}

export class Fault extends Error {
  readonly place: FaultPlace;

  constructor(place: FaultPlace, message: string) {
    super(message);
    this.place = place;
  }
}

/** `000002.jsonl, line 17, record 5017: it was edited`. */
export function describeFault({ place, message }: Pick<Fault, "place" | "message">): string {
  const where = [place.file];
  if (place.line !== undefined) where.push(`line ${place.line}`);
  if (place.seq !== undefined) where.push(`record ${place.seq}`);
  return `${where.join(", ")}: ${message}`;
}
