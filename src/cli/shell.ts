/** Assignments that a shell evaluates: every value is quoted so that nothing in it is. */
export const SHELLS = ["sh", "fish", "powershell"] as const;
export type Shell = (typeof SHELLS)[number];

export function setVariable(shell: Shell, name: string, value: string): string {
  switch (shell) {
    case "sh":
      return `export ${name}=${quoted(value)}`;
    case "fish":
      // In single quotes fish reads \\ and \' alone:
      // https://fishshell.com/docs/current/language.html#quotes
      return `set -gx ${name} '${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
    case "powershell":
      // PowerShell takes typographic quotes for quotes as well: about_Quoting_Rules.
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

/** A word of a POSIX shell's command; as it is where nothing in it means anything to a shell. */
export function quoteForShell(word: string): string {
  return PLAIN_WORD.test(word) ? word : quoted(word);
}

/** POSIX.1-2017, Shell Command Language, 2.2.2: in single quotes nothing is special but their end. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
