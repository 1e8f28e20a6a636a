#include "kedge/reward/reward_config.h"

#include <algorithm>

#include "kedge/config/nearest.h"
#include "kedge/core/error.h"

namespace kedge {
namespace {

constexpr std::array<std::string_view, 4> kCommonKeys = {"kind", "weight", "route", "clip"};

// The keys that one kind uses in addition to those of all kinds; the first ones must be set.
struct KindKeys {
  RewardKind kind;
  size_t num_required;
  std::vector<std::string_view> keys;
};

const KindKeys& keys_of(RewardKind kind) {
  static const std::vector<KindKeys> kTable = {
      {RewardKind::regex, 1, {"pattern", "use"}},
      {RewardKind::format, 1, {"pattern", "correct", "wrong"}},
      {RewardKind::lexicon, 1, {"file"}},
      {RewardKind::number, 0, {"field", "place", "tolerance", "correct", "wrong"}},
      {RewardKind::math, 0, {"field", "place", "tolerance", "correct", "wrong"}},
      {RewardKind::exact, 0, {"field", "ignore_case", "collapse_spaces", "correct", "wrong"}},
      {RewardKind::contains, 0, {"field", "ignore_case", "collapse_spaces", "correct", "wrong"}},
      {RewardKind::overlap, 0, {"field", "ignore_case", "collapse_spaces"}},
      {RewardKind::length, 0, {"unit", "target", "limit", "max_length", "window"}},
      {RewardKind::command, 1, {"command", "workers", "batch", "timeout", "start_timeout"}},
      {RewardKind::server, 1, {"url", "model_name", "send", "token_file", "wait_limit", "pad_to_length"}},
      {RewardKind::http, 1, {"url", "timeout"}},
      {RewardKind::model, 1, {"folder", "send"}},
      {RewardKind::critic, 0, {}},
      {RewardKind::custom, 0, {}},
  };
  return *std::find_if(kTable.begin(), kTable.end(), [&](const KindKeys& row) { return row.kind == kind; });
}

std::string joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

using Errors = std::vector<std::string>;

void check_clip(const std::optional<std::vector<double>>& clip, const std::string& key, Errors& errors) {
  if (clip && (clip->size() != 2 || (*clip)[0] > (*clip)[1])) errors.push_back(str(key, ".clip: expected [low, high]"));
}

void check_length(const RewardSourceConfig& config, const std::string& key, Errors& errors) {
  if (config.target && config.limit) errors.push_back(str(key, ".limit: a target is set too; a reward has one of the two"));
  if (config.max_length && (config.target || config.limit))
    errors.push_back(str(key, ".max_length: a ", config.target ? "target" : "limit", " is set too; a reward has one of the two"));
  if (config.window && !config.limit && !config.max_length) errors.push_back(str(key, ".window: requires a limit or a max_length"));
  if (!config.max_length) return;
  if (!config.window) {
    errors.push_back(str(key, ".window: max_length requires it; for example a fifth, ", std::max<int64_t>(1, *config.max_length / 5)));
  } else if (*config.window > *config.max_length) {
    errors.push_back(str(key, ".window: expected at most max_length, ", *config.max_length, ", found ", *config.window));
  }
}

void check_source(const RewardSourceConfig& config, const std::string& key, Errors& errors) {
  RewardSourceConfig copy = config;  // describe() hands out setters, so it needs a mutable object
  const KindKeys& own = keys_of(config.kind);
  const Section section = describe(copy);
  for (const Field& field : section.fields) {
    if (std::find(kCommonKeys.begin(), kCommonKeys.end(), field.name) != kCommonKeys.end()) continue;
    const auto found = std::find(own.keys.begin(), own.keys.end(), field.name);
    const auto place = static_cast<size_t>(found - own.keys.begin());
    if (found == own.keys.end() && !field.get().is_null()) {
      errors.push_back(str(key, ".", field.name, ": a reward of kind ", name_of(config.kind), " does not use it; it uses ",
                           own.keys.empty() ? "nothing more" : joined(own.keys),
                           nearest_hint(field.name, {own.keys.begin(), own.keys.end()})));
    } else if (place < own.num_required && field.get().is_null()) {
      errors.push_back(str(key, ".", field.name, ": a reward of kind ", name_of(config.kind), " requires it (", field.help, ")"));
    }
  }
  check_clip(config.clip, key, errors);
  if (config.kind == RewardKind::length) check_length(config, key, errors);
}

void check_sources(const std::map<std::string, RewardSourceConfig>& sources, const std::string& key, Errors& errors) {
  for (const auto& [name, source] : sources) {
    if (name.empty() || name.find('/') != std::string::npos) errors.push_back(str(key, ": the name \"", name, "\" is empty or has a /"));
    check_source(source, str(key, ".", name), errors);
  }
}

Marks marks_of(const RewardSourceConfig& config) { return {.correct = config.correct.value_or(1), .wrong = config.wrong.value_or(0)}; }

AnswerRule answer_rule_of(const RewardSourceConfig& config) {
  AnswerRule rule{.marks = marks_of(config)};
  rule.field = config.field.value_or(rule.field);
  rule.place = config.place.value_or(rule.place);
  rule.tolerance = config.tolerance.value_or(rule.tolerance);
  return rule;
}

RightText right_text_of(const RewardSourceConfig& config) {
  RightText right{.ignore_case = config.ignore_case.value_or(false), .collapse_spaces = config.collapse_spaces.value_or(false)};
  right.field = config.field.value_or(right.field);
  return right;
}

}  // namespace

std::string_view name_of(RewardKind kind) {
  for (const auto& entry : enum_names(kind))
    if (entry.value == kind) return entry.name;
  return "";
}

void check_rewards(const RewardConfig& config) {
  Errors errors;
  if (config.sources.empty())
    errors.emplace_back("reward.sources: no source is configured; example: reward.sources: {short: {kind: length, target: 50}}");
  check_sources(config.sources, "reward.sources", errors);
  check_sources(config.watch, "reward.watch", errors);
  check_clip(config.clip, "reward", errors);
  const RewardStandardization& standard = config.standardization;
  if (standard.enable && (!standard.mean || !standard.std))
    errors.emplace_back("reward.standardization: mean and std are required if it is enabled");
  std::string all;
  for (const std::string& error : errors) all += (all.empty() ? "" : "\n") + error;
  check(errors.empty(), all);
}

std::optional<RewardRule> make_rule(const RewardSourceConfig& config, const std::string& key) {
  switch (config.kind) {
    case RewardKind::regex:
      return regex_rule(config.pattern.value(), config.use.value_or(RegexUse::match), key + ".pattern");
    case RewardKind::format:
      return format_rule(config.pattern.value(), marks_of(config), key + ".pattern");
    case RewardKind::lexicon:
      return lexicon_rule(config.file.value());
    case RewardKind::number:
      return number_rule(answer_rule_of(config));
    case RewardKind::math:
      return math_rule(answer_rule_of(config));
    case RewardKind::exact:
      return exact_rule(right_text_of(config), marks_of(config));
    case RewardKind::contains:
      return contains_rule(right_text_of(config), marks_of(config));
    case RewardKind::overlap:
      return overlap_rule(right_text_of(config));
    case RewardKind::length:
      return length_rule({.unit = config.unit.value_or(LengthUnit::tokens),
                          .target = config.target,
                          .limit = config.limit,
                          .max_length = config.max_length,
                          .window = config.window});
    default:
      return std::nullopt;
  }
}

std::vector<std::string> urls_of(const RewardSourceConfig& config, const std::string& key) {
  const std::string where = key + ".url";
  const bool is_list = config.url.is_array();
  check(config.kind == RewardKind::server || !is_list, where, ": a list of addresses is for kind server; expected one address");
  const Json::Array all = is_list ? config.url.as_array(where) : Json::Array{config.url};
  std::vector<std::string> urls;
  for (const Json& url : all) {
    check(url.is_text(), where, ": expected an address", config.kind == RewardKind::server ? ", or a list of them" : "", ", found ",
          config.url.dump());
    urls.push_back(url.as_text(where));
    check(std::count(urls.begin(), urls.end(), urls.back()) == 1, where, ": ", urls.back(), " is listed twice");
  }
  check(!urls.empty(), where, ": an empty list");
  return urls;
}

std::vector<std::string> command_words(const RewardProgram& program) {
  std::vector<std::string> words = program.words;
  if (words.size() == 1 && !program.is_line) words.insert(words.begin(), "/usr/bin/env");
  return words;
}

void ConfigType<RewardProgram>::bind(RewardProgram& program, const ConfigNode& node, const std::string& path, BindReport& report) {
  const auto is_word = [](const ConfigNode& item) { return item.is_null() || item.kind == ConfigNode::Kind::scalar; };
  program.is_line = is_word(node);
  const std::vector<ConfigNode> words = program.is_line ? std::vector{node} : node.items;
  if (words.empty() || !std::all_of(words.begin(), words.end(), is_word))
    return report_wanted(node, path, "a shell command line, or a list of a program and its arguments", report);
  program.words.clear();
  for (const ConfigNode& word : words) program.words.push_back(word.text);
}

ConfigNode ConfigType<RewardProgram>::node(const RewardProgram& program) {
  return program.is_line ? scalar_node(program.words.front()) : ConfigType<std::vector<std::string>>::node(program.words);
}

template Section describe<RewardSourceConfig>(RewardSourceConfig& object);
template Section describe<RewardConfig>(RewardConfig& object);

}  // namespace kedge
