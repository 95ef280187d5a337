/**
 * Where a plugin has its credential from: a Secret as it stands, or an exchange that is repeated.
 */

/** `T` is a token, or whatever a plugin signs with. */
export interface CredentialSource<T> {
  /** What is valid now. @throws InjectionError where there is none */
  current(): T | Promise<T>;
  start(): Promise<void>;
  stop(): Promise<void>;
  refresh(): Promise<void>;
}

/** One that does not age: nothing to get, to renew or to end. */
export function fixedCredential<T>(value: T): CredentialSource<T> {
  const nothing = (): Promise<void> => Promise.resolve();
  return { current: () => value, start: nothing, stop: nothing, refresh: nothing };
}
