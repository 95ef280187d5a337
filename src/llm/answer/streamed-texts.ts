/** StreamedTexts keeps the bytes of a streamed answer, and reads its texts when it has ended. */
import type { ScannedText } from "../../guard/finding.ts";
import type { WireFormat } from "../dialects/dialect.ts";
import { dialects } from "../dialects/registry.ts";
import { SseParser } from "../dialects/sse.ts";

/** Bytes of an answer that are kept; what follows is not scanned. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

export class StreamedTexts {
  readonly #dialect: WireFormat;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(dialect: WireFormat) {
    this.#dialect = dialect;
  }

  /** @param chunk bytes for the client */
  push(chunk: Buffer): void {
    if (this.#bytes >= MAX_KEPT_BYTES) return;
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
  }

  /** Returns the texts so far, each from all of its events. */
  take(): readonly ScannedText[] {
    const parser = new SseParser();
    const chunks = this.#chunks;
    this.#chunks = [];
    const texts = new Map<string, string[]>();
    for (const { data } of [...chunks.flatMap((chunk) => parser.push(chunk)), ...parser.end()]) {
      for (const { source, text } of this.#read(data)) {
        const parts = texts.get(source);
        if (parts === undefined) texts.set(source, [text]);
        else parts.push(text);
      }
    }
    return [...texts].map(([source, parts]) => ({
      kind: "response",
      text: parts.join(""),
      tool: undefined,
      param: source,
      source,
    }));
  }

  #read(data: string): ReturnType<(typeof dialects)[WireFormat]["readStreamedTexts"]> {
    let event: unknown;
    try {
      event = JSON.parse(data);
    } catch {
      // `[DONE]`, and an event that the connection cut.
      return [];
    }
    return dialects[this.#dialect].readStreamedTexts(event);
  }
}
