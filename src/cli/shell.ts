/** Assignments for shells, quoted so that no value is evaluated. */
export const SHELLS = ["sh", "fish", "powershell"] as const;
export type Shell = (typeof SHELLS)[number];

export function setVariable(shell: Shell, name: string, value: string): string {
  switch (shell) {
    case "sh":
      return `export ${name}=${quoted(value)}`;
    case "fish":
      // In single quotes, fish interprets only \\ and \':
      // https://fishshell.com/docs/current/language.html#quotes
      return `set -gx ${name} '${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
    case "powershell":
      // PowerShell also treats typographic quotes as quotes: about_Quoting_Rules.
      return `$Env:${name} = '${value.replace(/['‘’‚‛]/g, "$&$&")}'`;
  }
}

export function unsetVariable(shell: Shell, name: string): string {
  switch (shell) {
    case "sh":
      return `unset ${name}`;
    case "fish":
      return `set -e ${name}`;
    case "powershell":
      return `Remove-Item Env:${name} -ErrorAction SilentlyContinue`;
  }
}

const PLAIN_WORD = /^[\w%+,./:=@-]+$/;

/** Quotes a word for a POSIX shell; unchanged if it contains no special character. */
export function quoteForShell(word: string): string {
  return PLAIN_WORD.test(word) ? word : quoted(word);
}

/**
 * POSIX.1-2017, Shell Command Language, 2.2.2: in single quotes only the closing quote is special.
 */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
