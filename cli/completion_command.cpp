#include <algorithm>
#include <array>

#include "kedge/config/nearest.h"
#include "kedge/core/error.h"

#include "cli/commands.h"
#include "cli/text/json_lines.h"

namespace kedge::cli {
namespace {

// Searches the table (completion.h) for completions of the last of the words, which come in KEDGE_WORDS with \037 between
// them. Prints "WORD<TAB>ABOUT" lines; a section's word ends in ".", a key's in "="; last, if names of files are possible, ":files",
// ":folders" or ":yaml". One program for all shells, so it has no single quotes.
constexpr std::string_view kAwk = R"(
BEGIN { FS = "\t"; n = split(ENVIRON["KEDGE_WORDS"], w, "\037"); if (n == 0) n = 1; cur = w[n] }
{ i = ++count[$1]; kind[$1, i] = $2; name[$1, i] = $3; values[$1, i] = $4; about[$1, i] = $5 }
function emit(word, why) { if (index(word, cur) == 1 && !seen[word]++) print word (why == "" ? "" : "\t" why) }
function above(path) { return path ~ / / ? substr(path, 1, match(path, / [^ ]*$/) - 1) : "" }
function row_of(path, which, word,   i) {
  for (i = 1; i <= count[path]; i++) if (kind[path, i] == which && name[path, i] == word) return i
  return 0
}
function flag_values(path, flag,   i) {
  for (; path != ""; path = above(path)) if (i = row_of(path, "f", flag)) return values[path, i]
  return ""
}
function offer(before, all,   i, m, part) {
  if (all ~ /^:/) { paths = all; return }
  m = split(all, part, "|")
  for (i = 1; i <= m; i++) if (part[i] != "-") emit(before part[i], "")
}
function offer_flags(path,   i) {
  for (i = 1; i <= count[path]; i++) if (kind[path, i] == "f") emit(name[path, i], about[path, i])
  if (above(path) != "") offer_flags(above(path))
}
function offer_keys(path, equals,   i, word, rest, dot) {
  for (i = 1; i <= count[path]; i++) {
    word = name[path, i]
    if (equals) { if (word == substr(cur, 1, equals - 1)) offer(word "=", values[path, i]); continue }
    if (index(word, cur) != 1) continue
    rest = substr(word, length(cur) + 1)
    if (dot = index(rest, ".")) emit(cur substr(rest, 1, dot), ""); else emit(word "=", about[path, i])
  }
}
function answer(   i, path, place, waits, equals, at) {
  for (i = 1; i < n; i++) {
    if (waits != "") { waits = ""; continue }
    if (w[i] ~ /^-/) { waits = flag_values(path, w[i]); continue }
    if (w[i] ~ /=/) continue
    if (row_of(path, "w", w[i])) { path = path (path == "" ? "" : " ") w[i]; place = 0 } else place++
  }
  equals = index(cur, "=")
  if (waits != "") { offer("", waits); return }
  if (cur ~ /^-/ && equals) { offer(substr(cur, 1, equals), flag_values(path, substr(cur, 1, equals - 1))); return }
  if (cur ~ /^-/) { offer_flags(path); return }
  for (i = 1; i <= count[path]; i++) {
    if (kind[path, i] == "w" && !place) emit(name[path, i], about[path, i])
    if (kind[path, i] == "p" && !equals && (at++ == place || name[path, i] ~ /\.\.\.$/ && at <= place)) paths = values[path, i]
    if (kind[path, i] == "c") offer_keys("@" name[path, i], equals)
  }
}
END { answer(); if (paths != "") print paths }
)";

constexpr std::string_view kAsk = R"(
# _kedge_ask PROGRAM WORD...: what may stand in place of the last word. The table is made anew when the program is newer than it.
_kedge_ask() {
  local program folder table
  program=$(unalias -a 2>/dev/null; command -v -- "$1") || return
  [[ $program == /* ]] || program=$PWD/$program
  shift
  folder=${XDG_CACHE_HOME:-$HOME/.cache}/kedge
  table=$folder/completion-${program//\//%}
  if [[ ! -s $table || $program -nt $table ]]; then
    mkdir -p "$folder" && "$program" completion --table >"$table.$$" 2>/dev/null && mv "$table.$$" "$table" || rm -f "$table.$$"
  fi
  local IFS=$'\037'
  KEDGE_WORDS="$*" awk "$_kedge_awk" "$table" 2>/dev/null
}
)";

constexpr std::string_view kBash = R"(
_kedge() {
  local IFS=$'\n' cur line file i prefix= kind=
  local -a words=()
  COMPREPLY=()
  # bash cuts key=value into three words; here they are one again.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    if ((${#words[@]} > 0)) && [[ ${COMP_WORDS[i]} == [=:]* || ${COMP_WORDS[i - 1]} == [=:] ]] &&
      ! [[ $i == "$COMP_CWORD" && ${COMP_LINE:0:COMP_POINT} == *' ' ]]; then
      words[-1]+=${COMP_WORDS[i]}
    else
      words+=("${COMP_WORDS[i]}")
    fi
  done
  cur=${words[-1]}
  [[ $COMP_WORDBREAKS == *=* ]] && prefix=${cur%"${cur##*[=:]}"} # what bash takes as typed
  while read -r line; do
    case $line in
      :*) kind=$line ;;
      *)
        line=${line%%$'\t'*}
        COMPREPLY+=("${line#"$prefix"}")
        ;;
    esac
  done < <(_kedge_ask "${COMP_WORDS[0]/#\~/$HOME}" "${words[@]}")
  if [[ -n $kind ]]; then
    file=$cur
    [[ $cur == *=* ]] && file=${cur##*=}
    if [[ -n $prefix ]]; then prefix=; else prefix=${cur%"$file"}; fi
    compopt -o filenames 2>/dev/null
    case $kind in
      :files) COMPREPLY+=($(compgen -P "$prefix" -f -- "$file")) ;;
      :folders) COMPREPLY+=($(compgen -P "$prefix" -d -- "$file")) ;;
      :yaml) COMPREPLY+=($(compgen -P "$prefix" -d -- "$file") $(compgen -P "$prefix" -f -X '!*.y*ml' -- "$file")) ;;
    esac
  fi
  if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[.=] ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _kedge kedge
)";

constexpr std::string_view kZsh = R"(
_kedge() {
  local line word about kind=
  local -a given whole open
  given=("${(@)words[2,CURRENT]}")
  given[-1]=$PREFIX
  while IFS= read -r line; do
    if [[ $line == :* ]]; then
      kind=$line
      continue
    fi
    word=${line%%$'\t'*}
    about=
    [[ $line == *$'\t'* ]] && about=${line#*$'\t'}
    if [[ $word == *[.=] ]]; then
      open+=("${word//:/\\:}:$about")
    else
      whole+=("${word//:/\\:}:$about")
    fi
  done < <(_kedge_ask "${words[1]/#\~/$HOME}" "${given[@]}")
  (( ${#whole} )) && _describe -t words 'kedge' whole
  (( ${#open} )) && _describe -t keys 'kedge' open -S ''
  [[ -n $kind && $PREFIX == *=* ]] && compset -P '*='
  case $kind in
    :files) _files ;;
    :folders) _files -/ ;;
    :yaml) _files -g '*.y*ml' ;;
  esac
}
if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then _kedge "$@"; else compdef _kedge kedge; fi
)";

constexpr std::string_view kFish = R"(
# __kedge_ask PROGRAM WORD...: what may stand in place of the last word. The table is made anew when the program is newer than it.
function __kedge_ask
    set -l program (command -s -- $argv[1]); or return
    set program (realpath $program)
    set -l folder $HOME/.cache/kedge
    set -q XDG_CACHE_HOME; and set folder $XDG_CACHE_HOME/kedge
    set -l table $folder/completion-(string replace -a / % -- $program)
    if not test -s $table; or test $program -nt $table
        mkdir -p $folder
        and $program completion --table >$table.$fish_pid 2>/dev/null
        and mv $table.$fish_pid $table
        or rm -f $table.$fish_pid
    end
    set -lx KEDGE_WORDS (string join \x1f -- $argv[2..-1])
    awk $__kedge_awk $table 2>/dev/null
end
function __kedge_complete
    set -l before (commandline -opc)
    set -l token (commandline -ct)
    set -l value (string replace -r '^[^=]*=' '' -- "$token")
    set -l key (string match -r '^[^=]*=' -- "$token")
    for line in (__kedge_ask $before "$token")
        switch $line
            case ':folders'
                for path in (__fish_complete_directories "$value" '')
                    echo "$key$path"
                end
            case ':files' ':yaml'
                for path in (__fish_complete_path "$value")
                    if test $line = ':files'; or string match -qr '(/|\.ya?ml)(\t|$)' -- $path
                        echo "$key$path"
                    end
                end
            case '*'
                echo $line
        end
    end
end
complete -c kedge -f -a '(__kedge_complete)'
)";

std::string bash_script() {
  return str("# Completion of kedge for bash:  source <(kedge completion bash)\n_kedge_awk='", kAwk, "'\n", kAsk, kBash);
}
std::string zsh_script() {
  return str("#compdef kedge\n# Completion of kedge for zsh:  source <(kedge completion zsh), after compinit\ntypeset -g _kedge_awk='",
             kAwk, "'\n", kAsk, kZsh);
}
std::string fish_script() {
  return str("# Completion of kedge for fish:  kedge completion fish | source\nset -g __kedge_awk '", kAwk, "'\n", kFish);
}

struct Shell {
  std::string_view name;
  std::string (*script)();
};
constexpr std::array kShells = {Shell{"bash", bash_script}, Shell{"zsh", zsh_script}, Shell{"fish", fish_script}};

}  // namespace

std::vector<std::string> completion_words() {
  std::vector<std::string> names;
  for (const Shell& shell : kShells) names.emplace_back(shell.name);
  return names;
}

std::string completion_flags() {
  return "To install it for every shell session:\n"
         "  bash    kedge completion bash > ~/.local/share/bash-completion/completions/kedge\n"
         "  zsh     kedge completion zsh > \"${fpath[1]}/_kedge\"\n"
         "  fish    kedge completion fish > ~/.config/fish/completions/kedge.fish\n\n"
         "The script asks the program once for all commands and settings and caches them in ~/.cache/kedge until the\n"
         "program changes, so completions are always up to date.\n";
}

int run_completion(const Arguments& arguments) {
  constexpr std::string_view kWants = "kedge completion: expected the name of one shell: bash, zsh or fish";
  check(arguments.size() == 1, kWants);
  const auto shell = std::find_if(kShells.begin(), kShells.end(), [&](const Shell& one) { return one.name == arguments[0]; });
  check(shell != kShells.end(), kWants, ", found \"", arguments[0], "\"", nearest_hint(arguments[0], completion_words()));
  print_text(shell->script());
  return kExitOk;
}

}  // namespace kedge::cli
