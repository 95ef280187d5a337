/**
 * WatchedFile reads a file at an interval, and reports its text when it has changed. Polling also
 * notices what inotify misses: the kubelet replaces a mounted ConfigMap through a symbolic link.
 */
import { readFile } from "node:fs/promises";
import type { Clock } from "./clock.ts";

export interface WatchedFileOptions {
  readonly file: string;
  readonly clock: Clock;
  /** Time between two reads, in milliseconds. */
  readonly intervalMs: number;
  /**
   * Called with the text of the first read, and with each text that differs from the last one;
   * undefined if the file does not exist.
   */
  readonly onText: (text: string | undefined) => void;
  /** Called when the file cannot be read; not again for the same reason. */
  readonly onError: (error: Error) => void;
}

export class WatchedFile {
  readonly #options: WatchedFileOptions;
  /** The text that was reported last; undefined before the first report. */
  #reported: { readonly text: string | undefined } | undefined;
  #lastError = "";
  #closed = false;
  #cancel = (): void => undefined;

  private constructor(options: WatchedFileOptions) {
    this.#options = options;
  }

  /** Reads the file once, then at every interval. */
  static async open(options: WatchedFileOptions): Promise<WatchedFile> {
    const watched = new WatchedFile(options);
    await watched.refresh();
    watched.#schedule();
    return watched;
  }

  /** Reads the file now. */
  async refresh(): Promise<void> {
    const { file, onText, onError } = this.#options;
    let text: string | undefined;
    try {
      text = await readFile(file, "utf8");
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code !== "ENOENT") {
        if (!this.#closed && message !== this.#lastError) onError(error as Error);
        this.#lastError = message;
        return;
      }
    }
    this.#lastError = "";
    if (this.#closed || (this.#reported !== undefined && this.#reported.text === text)) return;
    this.#reported = { text };
    onText(text);
  }

  close(): void {
    this.#closed = true;
    this.#cancel();
  }

  #schedule(): void {
    if (this.#closed) return;
    const { clock, intervalMs } = this.#options;
    this.#cancel = clock.after(
      intervalMs,
      () => void this.refresh().finally(() => this.#schedule()),
    );
  }
}
