/** AwsAnswer is an answer of one of the simulated AWS services. */
export interface AwsAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}
