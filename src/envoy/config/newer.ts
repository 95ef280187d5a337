/**
 * Fields and messages of Envoy that are newer than our copy of its definitions. Such a field cannot
 * be sent over xDS, except inside a TypedStruct. The sidecar's file may contain it as it is: Envoy
 * reads that file with its own definitions.
 */
import type { ConfigSource, StringMatcher, TypedExtensionConfig } from "../../gen/messages.ts";

declare module "../../gen/types/envoy/config/common/mutation_rules/v3/mutation_rules.ts" {
  interface HeaderMutation {
    readonly removeOnMatch?: { readonly keyMatcher: StringMatcher } | undefined;
  }
}

declare module "../../gen/types/envoy/config/core/v3/address.ts" {
  interface SocketAddress {
    readonly networkNamespaceFilepath?: string | undefined;
  }
}

declare module "../../gen/types/envoy/extensions/transport_sockets/tls/v3/tls.ts" {
  interface CommonTlsContext {
    readonly customTlsCertificateSelector?: TypedExtensionConfig | undefined;
  }
}

/** NewerMessages maps the names of the newer messages to their types. */
export interface NewerMessages {
  "envoy.extensions.transport_sockets.tls.cert_selectors.on_demand_secret.v3.Config": {
    readonly configSource: ConfigSource;
    readonly certificateMapper: TypedExtensionConfig;
  };
  "envoy.extensions.transport_sockets.tls.cert_mappers.sni.v3.SNI": {
    readonly defaultValue: string;
  };
}
