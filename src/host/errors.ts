/** Error that stops `svc up`, for people: the problem and the fix. */
export class StartError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "StartError";
  }
}
