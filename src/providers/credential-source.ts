/** Sources of a plugin's credential: a fixed Secret, or a repeated exchange. */

/** `T` is a token, or any other signing credential. */
export interface CredentialSource<T> {
  /** Returns the currently valid credential. @throws InjectionError if there is none */
  current(): T | Promise<T>;
  start(): Promise<void>;
  stop(): Promise<void>;
  refresh(): Promise<void>;
}

/** Returns a source for a credential that does not expire and needs no background work. */
export function fixedCredential<T>(value: T): CredentialSource<T> {
  const nothing = (): Promise<void> => Promise.resolve();
  return { current: () => value, start: nothing, stop: nothing, refresh: nothing };
}
