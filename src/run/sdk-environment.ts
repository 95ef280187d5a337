/**
 * Variables that point each SDK at the gateway: base URLs, to which the SDK appends its own path
 * (openai /chat/completions, anthropic /v1/messages, google-genai /v1beta/models), and keys, which
 * are the agent's workload token.
 */
export interface SdkEnvironment {
  readonly urls: Readonly<Record<string, string>>;
  /** Names of the variables whose value is the token. */
  readonly keys: readonly string[];
}

/** @param gatewayUrl without a path */
export function sdkEnvironment(gatewayUrl: string): SdkEnvironment {
  return {
    urls: {
      OPENAI_BASE_URL: `${gatewayUrl}/v1`,
      ANTHROPIC_BASE_URL: gatewayUrl,
      GOOGLE_GEMINI_BASE_URL: gatewayUrl,
    },
    keys: ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"],
  };
}
