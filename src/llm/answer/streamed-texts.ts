/** StreamedTexts reads the texts of a streamed answer, while it passes. */
import type { ScannedText } from "../../guard/finding.ts";
import type { WireFormat } from "../dialects/dialect.ts";
import { dialects } from "../dialects/registry.ts";
import { SseParser } from "../dialects/sse.ts";

/** Characters of an answer that are kept, some million tokens; what follows is not scanned. */
const MAX_KEPT_CHARS = 4 * 1024 * 1024;

export class StreamedTexts {
  readonly #dialect: WireFormat;
  readonly #parser = new SseParser();
  /** Parts of each text, by its source. */
  readonly #texts = new Map<string, string[]>();
  #chars = 0;

  constructor(dialect: WireFormat) {
    this.#dialect = dialect;
  }

  /** @param chunk bytes for the client */
  push(chunk: Buffer): void {
    for (const { data } of this.#parser.push(chunk)) this.#read(data);
  }

  /** Returns the texts of the events so far. */
  take(): readonly ScannedText[] {
    for (const { data } of this.#parser.end()) this.#read(data);
    return [...this.#texts].map(([source, parts]) => ({
      kind: "response",
      text: parts.join(""),
      tool: undefined,
      param: source,
      source,
    }));
  }

  #read(data: string): void {
    if (this.#chars >= MAX_KEPT_CHARS) return;
    let event: unknown;
    try {
      event = JSON.parse(data);
    } catch {
      // `[DONE]`, and an event that the connection cut.
      return;
    }
    for (const { source, text } of dialects[this.#dialect].readStreamedTexts(event)) {
      if (text === "") continue;
      this.#chars += text.length;
      const parts = this.#texts.get(source);
      if (parts === undefined) this.#texts.set(source, [text]);
      else parts.push(text);
    }
  }
}
