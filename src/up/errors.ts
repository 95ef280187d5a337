/** What stops `svc up`, in words for a person: what is wrong and how to mend it. */
export class StartError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "StartError";
  }
}
