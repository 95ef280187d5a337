/** The tokenizer of a model's folder: tokens of pieces of text, and what surrounds a window. */
import { ClassifierSetupError } from "./classifier.ts";
import type { ModelFiles } from "./model-files.ts";
import { firstLine, type HfTokenizer, type ModelRuntime } from "./runtime.ts";

export interface TextTokenizer {
  /** Special tokens before and after those of a window. */
  readonly before: readonly number[];
  readonly after: readonly number[];
  readonly padding: number;
  /** Tokens of a piece of text, without special tokens. */
  readonly tokensOf: (piece: string) => readonly number[];
}

export function textTokenizer(files: ModelFiles, { Tokenizer }: ModelRuntime): TextTokenizer {
  try {
    const tokenizer = new Tokenizer(files.tokenizer, files.tokenizerConfig);
    const tokensOf = (text: string): readonly number[] =>
      tokenizer.encode(text, { add_special_tokens: false }).ids;
    const special = specialTokens(files.tokenizer);
    return {
      ...surroundings(tokenizer, tokensOf),
      padding: paddingOf(files, tokenizer),
      tokensOf: (piece) => tokensOf(withoutSpecial(piece, special)),
    };
  } catch (error) {
    throw new ClassifierSetupError(
      `tokenizer.json of the model cannot be used: ${firstLine(error)}. It must be the file that ` +
        `Hugging Face's tokenizers write.`,
    );
  }
}

/** Takes apart the tokens of a short text with and without special ones. */
function surroundings(
  tokenizer: HfTokenizer,
  tokensOf: (text: string) => readonly number[],
): Pick<TextTokenizer, "before" | "after"> {
  const plain = tokensOf("a");
  const whole = tokenizer.encode("a", { add_special_tokens: true }).ids;
  const at = whole.findIndex((_token, index) =>
    plain.every((token, offset) => whole[index + offset] === token),
  );
  if (plain.length === 0 || at < 0) throw new Error("its special tokens cannot be found");
  return { before: whole.slice(0, at), after: whole.slice(at + plain.length) };
}

function paddingOf({ config, tokenizerConfig }: ModelFiles, tokenizer: HfTokenizer): number {
  const named = tokenizerConfig.pad_token;
  const token = typeof named === "string" ? named : named?.content;
  const id = token === undefined ? undefined : tokenizer.token_to_id(token);
  // Any token will do, because the attention mask excludes padding.
  return id ?? config.pad_token_id ?? 0;
}

/** Contents of the tokens that tokenizer.json marks as special. */
function specialTokens({ added_tokens: added }: Readonly<Record<string, unknown>>): string[] {
  const tokens = Array.isArray(added) ? (added as unknown[]) : [];
  return tokens.flatMap((token) => {
    const { content, special } = (token ?? {}) as Record<string, unknown>;
    return special === true && typeof content === "string" && content.length > 1 ? [content] : [];
  });
}

/**
 * Separates the first character of what a tokenizer would read as a special token, which a text
 * must not have: `[SEP]` or `[PAD]` in it would look to the model like the end of the text.
 */
function withoutSpecial(piece: string, special: readonly string[]): string {
  let text = piece;
  for (const token of special) {
    if (text.includes(token)) text = text.replaceAll(token, `${token[0]} ${token.slice(1)}`);
  }
  return text;
}
