/** The gateway's credentials at MCP servers. */
import type { McpCredential, McpServerPolicy } from "../../policy/snapshot.ts";

/** A header that carries a credential. */
export type CredentialHeader = readonly [name: string, value: string];

/** OAuth 2.0 client credentials. */
export type ClientCredentials = Extract<McpCredential, { readonly kind: "client-credentials" }>;

/** CredentialError is a credential that is not available now. The message shows no value. */
export class CredentialError extends Error {
  override readonly name = "CredentialError";
}

export interface McpCredentials {
  /**
   * Returns the header to send; undefined for none.
   * @throws CredentialError, or rejects with one
   */
  headerOf(
    server: McpServerPolicy,
  ): CredentialHeader | undefined | Promise<CredentialHeader | undefined>;
  /** The server has refused the credential: a token that can be renewed is renewed. */
  refused(server: McpServerPolicy): void;
}

/** Credentials that do not expire; see client-credentials.ts for the others. */
export const FIXED_CREDENTIALS: McpCredentials = {
  headerOf({ credential, name }) {
    switch (credential.kind) {
      case "none":
        return undefined;
      case "header":
        return [credential.name, credential.value.reveal()];
      case "client-credentials":
        throw new CredentialError(`Provider ${name}: OAuth is not available here`);
    }
  },
  refused: () => undefined,
};
