/**
 * Embeddings of one vendor's API, and the model between them. Anthropic has none. Nothing here does
 * I/O.
 */
import type { Leftover } from "../model.ts";

/** A request for vectors of texts. */
export interface EmbeddingRequest {
  readonly texts: readonly string[];
  /** Length of the vectors; undefined for the model's own. */
  readonly dimensions: number | undefined;
  readonly leftovers: readonly Leftover[];
}

export interface EmbeddingResponse {
  /** One for each text, in order. */
  readonly vectors: readonly (readonly number[])[];
}

/** How the client wants its answer. */
export interface EmbeddingShape {
  /** The upstream's name of the model. */
  readonly model: string;
  /** The request was Gemini's for a single content. */
  readonly single: boolean;
  /** OpenAI's `encoding_format`. */
  readonly packed: boolean;
  readonly inputTokens: number;
}

export interface EmbeddingDialect {
  /**
   * Parses the body of a request for one content or a list of them.
   * @throws BadRequestError
   */
  parseRequest(body: unknown, single: boolean): EmbeddingRequest;
  serialiseRequest(request: EmbeddingRequest, model: string): object;
  /** @throws UpstreamFormatError */
  parseResponse(body: unknown): EmbeddingResponse;
  serialiseResponse(response: EmbeddingResponse, shape: EmbeddingShape): object;
}
