/** The scripts of `svc completion`, which only call `svc __complete -- <words>`. */
export const COMPLETION_SHELLS = ["bash", "zsh", "fish"] as const;
export type CompletionShell = (typeof COMPLETION_SHELLS)[number];

/** bash 3.2 and newer, with or without the package bash-completion. */
const BASH = `# bash completion of svc: source <(svc completion bash)
_svc_complete() {
  local IFS=$'\\n' line cur="\${COMP_WORDS[COMP_CWORD]}" files=
  local words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
  COMPREPLY=()
  while read -r line; do
    if [[ $line == :files ]]; then files=1; elif [[ -n $line ]]; then COMPREPLY+=("$line"); fi
  done < <("\${COMP_WORDS[0]}" __complete -- "\${words[@]}" 2>/dev/null)
  if [[ -n $files ]]; then
    while read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
    # Slashes and quotes of files; bash 3.2 has no compopt.
    compopt -o filenames 2>/dev/null || true
  fi
  return 0
}
complete -F _svc_complete svc
`;

const ZSH = `#compdef svc
# zsh completion of svc: svc completion zsh > "\${fpath[1]}/_svc"
_svc() {
  local -a lines
  lines=("\${(@f)$("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ "\${lines[1]}" == ":files" ]]; then
    _files
    lines=("\${(@)lines[2,-1]}")
  fi
  lines=("\${(@)lines:#}")
  (( \${#lines} )) && compadd -- "\${lines[@]}"
  return 0
}
if [[ "\${funcstack[1]}" == "_svc" ]]; then _svc "$@"; else compdef _svc svc; fi
`;

const FISH = `# fish completion of svc: svc completion fish > ~/.config/fish/completions/svc.fish
function __svc_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    set -l lines ($program __complete -- $words 2>/dev/null)
    for line in $lines
        if test "$line" = ":files"
            __fish_complete_path (commandline -ct)
        else
            printf '%s\\n' $line
        end
    end
end
complete -c svc -f -a '(__svc_complete)'
`;

export const COMPLETION_SCRIPTS: Readonly<Record<CompletionShell, string>> = {
  bash: BASH,
  zsh: ZSH,
  fish: FISH,
};
