/**
 * The phases of one HTTP request as Envoy's external processor protocol defines them, and our
 * answers: typed, without protobuf. Source: envoy/service/ext_proc/v3/external_processor.proto.
 */

/**
 * Header values by lower-case name; a repeated header keeps its values in order, joined with `, `.
 */
export type HeaderMap = ReadonlyMap<string, string>;

export type Phase =
  | { readonly kind: "request_headers"; readonly headers: HeaderMap; readonly endOfStream: boolean }
  | { readonly kind: "request_body"; readonly body: Buffer; readonly endOfStream: boolean }
  | { readonly kind: "request_trailers" }
  | {
      readonly kind: "response_headers";
      readonly headers: HeaderMap;
      readonly endOfStream: boolean;
    }
  | { readonly kind: "response_body"; readonly body: Buffer; readonly endOfStream: boolean }
  | { readonly kind: "response_trailers" };

export type PhaseKind = Phase["kind"];

/** Changes to the headers of the current message. Names are lower-case. */
export interface HeaderChanges {
  /** Overwrites or adds. */
  readonly set?: readonly (readonly [name: string, value: string])[];
  readonly remove?: readonly string[];
}

/** Mode in which Envoy sends the response body, set in the answer to the response headers. */
export type ResponseBodyMode = "streamed" | "buffered";

export interface ContinueReply {
  readonly headers?: HeaderChanges;
  /** Replaces the body (or, in a streamed phase, this chunk); several buffers are concatenated. */
  readonly body?: Buffer | readonly Buffer[];
  /** With `body`, in the answer to headers: replaces the whole body, and the rest is not read. */
  readonly replaceAll?: boolean;
  readonly responseBodyMode?: ResponseBodyMode;
  /** Envoy selects the route again, by the changed headers. */
  readonly clearRouteCache?: boolean;
}

/** Answers the client at once, instead of continuing. */
export interface ImmediateReply {
  readonly status: number;
  readonly headers?: HeaderChanges;
  readonly body: string | Buffer;
}
