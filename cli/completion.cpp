#include "cli/completion.h"

#include <algorithm>
#include <sstream>

#include "kedge/config/config.h"
#include "kedge/core/error.h"

#include "cli/named_configs.h"

namespace kedge::cli {
namespace {

using Kind = CompletionRow::Kind;
using CompletionRows = std::vector<CompletionRow>;

std::vector<std::string> words_in(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string paths_of(const std::string& about) {
  return about.find("folder") != std::string::npos && about.find("file") == std::string::npos ? ":folders" : ":files";
}

// Of a type as help and tables name it: "reward | kl or null", "text".
std::string values_of(const std::string& type, const std::string& about) {
  const size_t optional = type.find(" or null");
  const std::string plain = type.substr(0, optional);
  std::vector<std::string> values;
  if (plain == "bool") values = {"true", "false"};
  if (plain.find(" | ") != std::string::npos) values = words_in(plain);
  std::erase(values, "|");
  if (values.empty()) return plain == "text" || plain == "any" ? paths_of(about) : "-";
  if (optional != std::string::npos) values.emplace_back("null");
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : "|") + value;
  return text;
}

// The value of a flag as its help shows it: <text>, fp32 | bf16, or a word of the usage as FILE or 'COMMAND ...'.
std::string flag_values(const std::string& shown, const std::string& about) {
  if (shown.empty()) return "";
  if (shown.starts_with('\'')) return "-";
  if (shown.find(" | ") != std::string::npos) return values_of(shown, about);
  return shown.starts_with('<') ? values_of(shown.substr(1, shown.size() - 2), about) : paths_of(about);
}

// A row of a command's help: "  --flag <type>  about", "  RUN  about".
bool is_row(const std::string& line) {
  return line.size() > 4 && line.starts_with("  ") && (line.compare(2, 2, "--") == 0 || (line[2] >= 'A' && line[2] <= 'Z'));
}

CompletionRow read_row(const std::string& line, const std::string& path) {
  const size_t gap = std::min(line.size(), line.find("  ", 2));
  const std::string left = line.substr(2, gap - 2);
  const size_t space = std::min(left.size(), left.find(' '));
  CompletionRow row{path, left.starts_with("--") ? Kind::flag : Kind::place, left.substr(0, space)};
  row.values = left.substr(std::min(left.size(), space + 1));
  row.about = line.substr(std::min(line.size(), line.find_first_not_of(' ', gap)));
  return row;
}

// The rows of its help. One that has several parts has a heading for each: "kedge data check", "kedge bench train.step: ...".
void add_help(CompletionRows& rows, const Command& command) {
  const std::string name(command.name);
  const std::vector<std::string> phrases = command.words == nullptr ? std::vector<std::string>{} : command.words();
  const size_t begin = rows.size();
  std::string path = name;
  std::istringstream lines(command.flags());
  for (std::string line; std::getline(lines, line);) {
    for (const std::string& phrase : phrases)
      if (const std::string heading = str("kedge ", name, " ", phrase); line == heading || line.starts_with(heading + ":"))
        path = str(name, " ", phrase);
    if (is_row(line)) {
      rows.push_back(read_row(line, path));
    } else if (rows.size() > begin && line.starts_with("        ")) {  // a continuation, or text that did not fit next to a long flag
      std::string& about = rows.back().about;
      about += (about.empty() ? "" : " ") + line.substr(std::min(line.size(), line.find_first_not_of(' ')));
    }
  }
  for (size_t i = begin; i < rows.size(); ++i) {
    CompletionRow& row = rows[i];
    row.values = row.kind == Kind::flag ? flag_values(row.values, row.about) : paths_of(row.about);
  }
  std::erase_if(rows, [&](const CompletionRow& row) {  // a positional word, as in kedge config NAME
    return row.path == name && row.kind == Kind::place && !phrases.empty();
  });
}

// "serve reward": "reward" after "serve". Phrases may share a prefix.
void add_phrase(CompletionRows& rows, std::string path, const std::string& phrase) {
  for (const std::string& word : words_in(phrase)) {
    const auto is_same = [&](const CompletionRow& row) { return row.path == path && row.kind == Kind::word && row.name == word; };
    if (std::none_of(rows.begin(), rows.end(), is_same)) rows.push_back({path, Kind::word, word});
    path += " " + word;
  }
}

// The configuration that a command, or one that it plans, takes: serve reward has serve_reward.
void add_config(CompletionRows& rows, const std::string& path, const std::string& command) {
  std::string name = command;
  std::replace(name.begin(), name.end(), ' ', '_');
  if (find_config(name) == nullptr) return;
  rows.push_back({path, Kind::config, name});
  rows.push_back({path, Kind::place, "CONFIG", ":yaml"});
}

void add_command(CompletionRows& rows, const Command& command) {
  const std::string name(command.name);
  rows.push_back({"", Kind::word, name, "", std::string(command.summary)});
  rows.push_back({"help", Kind::word, name, "", std::string(command.summary)});
  add_help(rows, command);
  rows.push_back({name, Kind::flag, "--help", "", "what it does, with examples"});
  if (name != "config") add_config(rows, name, name);
  if (command.words == nullptr) return;
  for (const std::string& phrase : command.words()) {
    add_phrase(rows, name, phrase);
    if (name != "config") add_config(rows, str(name, " ", phrase), name == "plan" ? phrase : str(name, " ", phrase));
  }
}

void add_keys(CompletionRows& rows, const std::string& path, const std::string& above, const Section& section) {
  for (const Field& field : section.fields) {
    if (field.section) {
      add_keys(rows, path, above + field.name + ".", field.section());
    } else {
      const bool is_map = field.type.starts_with("map of ");
      rows.push_back({path, Kind::key, above + field.name + (is_map ? "." : ""), values_of(field.type, field.help), field.help});
    }
  }
  for (const auto& [name, target] : section.aliases)
    if (name.find('.') == std::string::npos) rows.push_back({path, Kind::key, above + name, "-", "the same as " + above + target});
}

}  // namespace

std::vector<CompletionRow> completion_rows(std::span<const Command> commands) {
  CompletionRows rows;
  for (const Command& command : commands) add_command(rows, command);
  rows.push_back({"", Kind::word, "help", "", "what a command does, with examples"});
  rows.push_back({"", Kind::flag, "--help", "", "the commands"});
  rows.push_back({"", Kind::flag, "--version", "", "of this program"});
  for (const NamedConfig& config : named_configs()) add_keys(rows, str("@", config.name), "", config.section());
  return rows;
}

std::string completion_table(std::span<const Command> commands) {
  std::string text;
  for (CompletionRow& row : completion_rows(commands)) {
    std::replace_if(
        row.about.begin(), row.about.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
    text += str(row.path, "\t", std::string(1, static_cast<char>(row.kind)), "\t", row.name, "\t", row.values, "\t", row.about, "\n");
  }
  return text;
}

}  // namespace kedge::cli
