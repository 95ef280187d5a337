/** Changes a gateway from inside: preloads a module of this folder in its process. */

/** @returns variables for {@link Stack.start} */
export function preloadGateway(module: string): Readonly<Record<string, string>> {
  const urlOf = (name: string): string => new URL(name, import.meta.url).href;
  return {
    NODE_OPTIONS: `--import=${urlOf("preload-gateway.mjs")}`,
    SVC_E2E_PRELOAD: urlOf(module),
  };
}
