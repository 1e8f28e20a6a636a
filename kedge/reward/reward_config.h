#pragma once
// The keys of `reward`: where rewards come from, and how they are combined. Sources of the kinds server, http and model are created
// elsewhere; this part only knows their keys.
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kedge/config/config_schema.h"
#include "kedge/reward/reward_rules.h"

namespace kedge {

enum class RewardKind {
  regex,
  format,
  lexicon,
  number,
  math,
  exact,
  contains,
  overlap,
  length,
  command,
  server,
  http,
  model,
  critic,
  custom
};
constexpr auto enum_names(RewardKind) {
  return std::array<EnumName<RewardKind>, 15>{{{"regex", RewardKind::regex},
                                               {"format", RewardKind::format},
                                               {"lexicon", RewardKind::lexicon},
                                               {"number", RewardKind::number},
                                               {"math", RewardKind::math},
                                               {"exact", RewardKind::exact},
                                               {"contains", RewardKind::contains},
                                               {"overlap", RewardKind::overlap},
                                               {"length", RewardKind::length},
                                               {"command", RewardKind::command},
                                               {"server", RewardKind::server},
                                               {"http", RewardKind::http},
                                               {"model", RewardKind::model},
                                               {"critic", RewardKind::critic},
                                               {"custom", RewardKind::custom}}};
}

// A model's input for a rollout.
enum class RewardInput { automatic, tokens, text, messages };
constexpr auto enum_names(RewardInput) {
  return std::array<EnumName<RewardInput>, 4>{{{"auto", RewardInput::automatic},
                                               {"tokens", RewardInput::tokens},
                                               {"text", RewardInput::text},
                                               {"messages", RewardInput::messages}}};
}

// A line of the shell, or a program and its arguments: words as they are written, 1.10 and yes too.
struct RewardProgram {
  std::vector<std::string> words;
  bool is_line = false;  // a single word, for /bin/sh
};

template <>
struct ConfigType<RewardProgram> {
  static std::string name() { return "text or list of text"; }
  static void bind(RewardProgram& program, const ConfigNode& node, const std::string& path, BindReport& report);
  static ConfigNode node(const RewardProgram& program);
};

// One of `reward.sources` or `reward.watch`. A key that is null was not set; check_rewards() knows which kind uses which.
struct RewardSourceConfig {
  RewardKind kind = RewardKind::regex;
  double weight = 1;
  std::map<std::string, Json> route = {};
  std::optional<std::vector<double>> clip = {};
  std::optional<std::string> pattern = {};
  std::optional<RegexUse> use = {};
  std::optional<std::string> file = {};
  std::optional<std::string> field = {};
  std::optional<AnswerPlace> place = {};
  std::optional<double> tolerance = {};
  std::optional<bool> ignore_case = {}, collapse_spaces = {};
  std::optional<double> correct = {}, wrong = {};
  std::optional<LengthUnit> unit = {};
  std::optional<int64_t> target = {}, limit = {}, max_length = {}, window = {};
  std::optional<RewardProgram> command = {};
  std::optional<int64_t> workers = {}, batch = {};
  std::optional<double> timeout = {}, start_timeout = {};
  Json url = nullptr;
  std::optional<std::string> folder = {}, model_name = {}, token_file = {};
  std::optional<double> wait_limit = {};
  std::optional<RewardInput> send = {};
  std::optional<int64_t> pad_to_length = {};

  void fields(auto&& key) {
    key("kind", kind, "how the reward is computed", required());
    key("weight", weight, "its weight in the sum");
    key("route", route, "only rows whose FIELD is VALUE, or one of a list: {FIELD: VALUE}; empty: all rows");
    key("clip", clip, "[low, high]: bounds of the value, before the weight");
    key("pattern", pattern, "regex, format: regular expression, Perl and Python syntax");
    key("use", use, "regex: whether the pattern occurs in the response (match), or how often (count); null: match");
    key("file", file, "lexicon: each line has a word, a tab and its value");
    key("field", field,
        "number, math, exact, contains, overlap: field of the row with the correct answer; null: answer, or as docs/rewards.md lists");
    key("place", place, "number, math: where it is in the response: last, hashes (after ####), boxed (\\boxed{}); null: any");
    key("tolerance", tolerance, "number, math: allowed error (docs/rewards.md); null: 1e-6", at_least(0));
    key("ignore_case", ignore_case, "exact, contains, overlap: ignore case");
    key("collapse_spaces", collapse_spaces, "exact, contains, overlap: treat any run of white space as one space");
    key("correct", correct, "number, math, exact, contains, format: reward of a correct response; null: 1");
    key("wrong", wrong, "number, math, exact, contains, format: reward of a wrong response; null: 0");
    key("unit", unit, "length: what is counted; null: tokens");
    key("target", target, "length: -|length - target| / target", at_least(1));
    key("limit", limit, "length: 0 up to here, then -(length - limit) / window", at_least(1));
    key("max_length", max_length, "length: 0 up to max_length - window, falling to -1 at max_length", at_least(1));
    key("window", window, "length: distance beyond the limit at which the reward is -1, null: the limit; with max_length required",
        at_least(1));
    key("command", command, "command: a shell command line, or a list of program and arguments");
    key("workers", workers, "command: number of processes; null: 1", at_least(1));
    key("batch", batch, "command: maximum rows per request; above 1 they are sent as lists; null: 1", at_least(1), kedge::unit("rows"));
    key("timeout", timeout, "command: time limit per row, null: 60; http: time limit per reply, null: 300", above(0), kedge::unit("s"));
    key("start_timeout", start_timeout, "command: extra time for a process's first rows; null: 60", at_least(0), kedge::unit("s"));
    key("url", url, "server, http: its address, for example http://host:5555; server: or a list of servers of the same model");
    key("model_name", model_name, "server: name of the model on the server; null: reward_model");
    key("token_file", token_file, "server: file with the server's bearer token");
    key("wait_limit", wait_limit, "server: how long the server, or all of a list, may be unreachable; null: 6000", above(0),
        kedge::unit("s"));
    key("folder", folder, "model: a reward model in Hugging Face's layout");
    key("send", send, "server, model: what it receives; null: auto (docs/rewards.md)");
    key("pad_to_length", pad_to_length, "server: width to which rows of ids are padded when sent; null: the longest row", at_least(1),
        kedge::unit("tokens"));
  }
};

// Keys of `reward.standardization`, and of a server's `model.reward_standardization`.
struct RewardStandardization {
  bool enable = false;
  std::optional<double> mean = {}, std = {};

  void fields(auto&& field) {
    field("enable", enable, "return (reward - mean) / std");
    field("mean", mean, "mean reward of the initial policy's responses");
    field("std", std, "their standard deviation", above(0));
  }
};

enum class OnRewardFailure { mask, fail };
constexpr auto enum_names(OnRewardFailure) {
  return std::array<EnumName<OnRewardFailure>, 2>{{{"mask", OnRewardFailure::mask}, {"fail", OnRewardFailure::fail}}};
}

// Keys of `reward`.
struct RewardConfig {
  std::map<std::string, RewardSourceConfig> sources = {};
  std::map<std::string, RewardSourceConfig> watch = {};
  RewardStandardization standardization = {};
  double scale = 1;
  std::optional<std::vector<double>> clip = {};
  int64_t retries = 2;
  OnRewardFailure on_failure = OnRewardFailure::mask;

  void fields(auto&& field) {
    field("sources", sources, "NAME: {kind, weight, ...}; the reward is their weighted sum");
    field("watch", watch, "like sources, but only logged, never trained on");
    field("standardization", standardization, "of the weighted sum, applied first");
    field("scale", scale, "factor, applied after standardization");
    field("clip", clip, "[low, high] of the reward, applied after scale");
    field("retries", retries, "how often a row whose command or server failed is tried again", at_least(0));
    field("on_failure", on_failure, "rows without a reward: exclude them from training (mask), or end the run (fail)");
  }
};

// Compiled once, in reward_config.cpp.
extern template Section describe<RewardSourceConfig>(RewardSourceConfig& object);
extern template Section describe<RewardConfig>(RewardConfig& object);

[[nodiscard]] std::string_view name_of(RewardKind kind);

// Throws one UsageError that lists all errors, one per line, by key: "reward.sources.short.pattern: ...".
void check_rewards(const RewardConfig& config);

// Has its kind a rule? Then the rule; `key` opens its errors: "reward.sources.short".
[[nodiscard]] std::optional<RewardRule> make_rule(const RewardSourceConfig& config, const std::string& key);

// The addresses in `url`: one, or of a server several. `key` opens the error.
[[nodiscard]] std::vector<std::string> urls_of(const RewardSourceConfig& config, const std::string& key);

// What a RewardCommand starts: one word is a line of the shell.
[[nodiscard]] std::vector<std::string> command_words(const RewardProgram& program);

}  // namespace kedge
