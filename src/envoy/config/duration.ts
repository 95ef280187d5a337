/** Formats milliseconds as a protobuf Duration. */
export function duration(milliseconds: number): string {
  return `${milliseconds / 1000}s`;
}
