#pragma once
// All that a shell needs to complete command lines, as a table. Everything in it comes from the table of commands, their help and the
// fields of their configurations, so that it is always up to date. Independent of shells.
//
// A shell reads the table instead of starting the program at every key press, which takes hundreds of milliseconds, most
// of them for LibTorch. The shells' scripts keep the table in a file, until the program is newer, and all of them search it with one awk
// program (completion_command.cpp).
#include <span>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace kedge::cli {

// What may follow the words of `path`.
struct CompletionRow {
  enum class Kind : char {
    word = 'w',    // `name` is a word that makes the path longer: "serve", then "serve reward"
    flag = 'f',    // `name` with its dashes; `values` is empty for a switch
    place = 'p',   // a positional argument; `name` ends in "..." if there may be several
    config = 'c',  // key=value of the configuration `name`, whose keys have the path "@NAME"
    key = 'k'      // dotted; ends in a dot if the names below are chosen by the user
  };
  std::string path;
  Kind kind = Kind::word;
  std::string name;
  std::string values = {};  // "a|b|c", ":files", ":folders", ":yaml", or "-": others
  std::string about = {};
};

[[nodiscard]] std::vector<CompletionRow> completion_rows(std::span<const Command> commands);

// One line each, with tabs between its five parts.
[[nodiscard]] std::string completion_table(std::span<const Command> commands);

}  // namespace kedge::cli
