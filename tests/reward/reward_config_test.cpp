#include "kedge/reward/reward_config.h"

#include <gtest/gtest.h>

#include "kedge/core/files.h"
#include "kedge/text/unicode/regex.h"

#include "tests/support/assets.h"
#include "tests/support/expect_error.h"
#include "tests/support/reward_toys.h"
#include "tests/support/rollouts.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

std::string error_of_file(const std::string& yaml) {
  return testing::error_of([&] {
    check_rewards(testing::load_rewards(yaml));
    return 0;
  });
}

TEST(RewardConfig, IsReadFromAFileAndOverrides) {
  const RewardConfig config = testing::load_rewards(
      "reward:\n"
      "  sources:\n"
      "    maths: {kind: number, field: solution, weight: 2, route: {task: [math, 3]}}\n"
      "    brief: {kind: length, unit: words, limit: 100}\n"
      "  watch:\n"
      "    polite: {kind: regex, pattern: '(?i)please', clip: [0, 1]}\n"
      "  standardization: {enable: true, mean: 0.5, std: 2}\n"
      "  on_failure: fail\n",
      {"reward.sources.brief.limit=50", "reward.clip=[-1,1]"});
  check_rewards(config);
  EXPECT_EQ(config.sources.at("maths").field, "solution");
  EXPECT_EQ(config.sources.at("maths").weight, 2);
  EXPECT_EQ(config.sources.at("maths").route.at("task"), Json::parse(R"(["math", 3])"));
  EXPECT_EQ(config.sources.at("brief").limit, 50);
  EXPECT_EQ(config.watch.at("polite").kind, RewardKind::regex);
  EXPECT_EQ(config.clip, (std::vector<double>{-1, 1}));
  EXPECT_EQ(config.standardization.std, 2);
  EXPECT_EQ(config.on_failure, OnRewardFailure::fail);
}

TEST(RewardConfig, SurvivesADump) {
  testing::RewardFile file{testing::load_rewards(
      "reward: {sources: {a: {kind: command, command: [python3, x.py], route: {task: a}}, b: {kind: exact, ignore_case: true}}}")};
  const std::string dump = dump_config(describe(file));
  testing::RewardFile again{testing::load_rewards(dump)};
  EXPECT_EQ(dump_config(describe(again)), dump);
  check_rewards(again.reward);
}

TEST(RewardConfig, NamesWrongKeysAndTheNearest) {
  EXPECT_EQ(error_of_file("reward: {sources: {helpful: {kind: regex, patern: x}}}"),
            "x.yaml:1: unknown key \"reward.sources.helpful.patern\"; nearest: reward.sources.helpful.pattern");
  EXPECT_EQ(error_of_file("reward: {sources: {helpful: {pattern: x}}}"),
            "x.yaml:1: missing required key \"reward.sources.helpful.kind\" (how the reward is computed); set it in the file or with "
            "reward.sources.helpful.kind=...");
  EXPECT_EQ(error_of_file("reward: {sources: {a: {kind: length, target: 0}}}"),
            "x.yaml:1: reward.sources.a.target: expected at least 1, found 0");
}

TEST(RewardConfig, NamesKeysThatAreMissingOrThatNobodyReads) {
  EXPECT_EQ(
      error_of_file("reward: {sources: {helpful: {kind: regex}}}"),
      "reward.sources.helpful.pattern: a reward of kind regex requires it (regex, format: regular expression, Perl and Python syntax)");
  EXPECT_EQ(error_of_file("reward: {sources: {brief: {kind: length, pattern: x, target: 5, limit: 7}}}"),
            "reward.sources.brief.pattern: a reward of kind length does not use it; it uses unit, target, limit, max_length, window\n"
            "reward.sources.brief.limit: a target is set too; a reward has one of the two");
  EXPECT_EQ(error_of_file("reward: {sources: {a: {kind: length, window: 5}}}"),
            "reward.sources.a.window: requires a limit or a max_length");
  EXPECT_EQ(error_of_file("reward: {sources: {a: {kind: length, max_length: 100}}}"),
            "reward.sources.a.window: max_length requires it; for example a fifth, 20");
  EXPECT_EQ(error_of_file("reward: {sources: {a: {kind: length, max_length: 100, window: 101}}}"),
            "reward.sources.a.window: expected at most max_length, 100, found 101");
  EXPECT_EQ(error_of_file("reward: {sources: {a: {kind: length, max_length: 100, window: 10, limit: 5}}}"),
            "reward.sources.a.max_length: a limit is set too; a reward has one of the two");
  EXPECT_EQ(error_of_file("reward: {clip: [1]}"),
            "reward.sources: no source is configured; example: reward.sources: {short: {kind: length, target: 50}}\nreward.clip: expected "
            "[low, high]");
  EXPECT_EQ(
      error_of_file("reward: {sources: {a/b: {kind: length, clip: [2, 1]}}, watch: {c: {kind: lexicon}}, standardization: {enable: true}}"),
      "reward.sources: the name \"a/b\" is empty or has a /\n"
      "reward.sources.a/b.clip: expected [low, high]\n"
      "reward.watch.c.file: a reward of kind lexicon requires it (lexicon: each line has a word, a tab and its value)\n"
      "reward.standardization: mean and std are required if it is enabled");
}

TEST(RewardConfig, WhatTheDocsShowLoads) {
  int64_t count = 0;
  for (const char* page : {"docs/rewards.md", "examples/python_reward/README.md"}) {
    const std::string text = read_text(testing::source_folder() / page);
    for (size_t at = text.find("```yaml\n"); at != std::string::npos; at = text.find("```yaml\n", at + 1), ++count) {
      const size_t start = at + 8;
      check_rewards(testing::load_rewards(text.substr(start, text.find("```", start) - start)));
    }
  }
  EXPECT_EQ(count, 5);
}

// What the one source of a file makes of an answer.
double value_of(const std::string& source, const std::string& response) {
  const RewardConfig config = testing::load_rewards("reward: {sources: {a: " + source + "}}");
  check_rewards(config);
  return make_rule(config.sources.at("a"), "reward.sources.a").value()(testing::rollout(response, R"({"answer": "4 A", "n": 4})")).value;
}

TEST(RewardConfig, EveryKindOfRuleIsMade) {
  const testing::TempFolder folder;
  const std::string lexicon = folder.file("words.txt", "good\t2\n").string();
  EXPECT_EQ(value_of("{kind: lexicon, file: " + lexicon + "}", "Good"), 2);
  EXPECT_EQ(value_of("{kind: number, correct: 5}", "4"), 5);
  EXPECT_EQ(value_of("{kind: number, field: n, place: boxed, tolerance: 0.5}", "\\boxed{3} 0"), 1);
  EXPECT_EQ(value_of("{kind: math, field: n, correct: 2}", "\\boxed{\\frac{8}{2}}"), 2);
  EXPECT_EQ(value_of("{kind: math, field: n, place: boxed, tolerance: 0, wrong: -1}", "4"), -1);
  EXPECT_EQ(value_of("{kind: length, unit: characters, max_length: 6, window: 4}", "good"), -0.5);
  EXPECT_EQ(value_of("{kind: exact}", "4 A"), 1);
  EXPECT_EQ(value_of("{kind: exact, ignore_case: true, collapse_spaces: true, wrong: -1}", "4\na"), 1);
  EXPECT_EQ(value_of("{kind: exact, wrong: -1}", "4\na"), -1);
  EXPECT_EQ(value_of("{kind: contains}", "is 4 A."), 1);
  EXPECT_EQ(value_of("{kind: contains, ignore_case: true, correct: 3}", "is 4 a."), 3);
  EXPECT_EQ(value_of("{kind: overlap}", "4 B"), 2.0 / 3);
  EXPECT_EQ(value_of("{kind: overlap, ignore_case: true, collapse_spaces: true}", "4\n\na"), 1);
  EXPECT_EQ(value_of("{kind: length}", "good"), 2);
  EXPECT_EQ(value_of("{kind: length, unit: characters, limit: 2, window: 4}", "good"), -0.5);
  EXPECT_FALSE(make_rule({.kind = RewardKind::command}, "a").has_value());
}

TEST(RewardConfig, RulesOfExpressionsAreMade) {
  if (!has_regex()) GTEST_SKIP() << "built without PCRE2";
  EXPECT_EQ(value_of("{kind: regex, pattern: o}", "good"), 1);
  EXPECT_EQ(value_of("{kind: regex, pattern: o, use: count}", "good"), 2);
  EXPECT_EQ(value_of("{kind: format, pattern: 'g.*', correct: 3, wrong: -3}", "good"), 3);
  EXPECT_EQ(value_of("{kind: format, pattern: 'g.*', correct: 3, wrong: -3}", "no good"), -3);
}

// Also after the settings were written out and read again.
std::vector<std::string> words_of(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  testing::RewardFile file{testing::load_rewards(yaml, overrides)};
  testing::RewardFile again{testing::load_rewards(dump_config(describe(file)))};
  const std::vector<std::string> words = command_words(file.reward.sources.at("a").command.value());
  EXPECT_EQ(command_words(again.reward.sources.at("a").command.value()), words);
  return words;
}

std::string command_file(const std::string& command) { return "reward: {sources: {a: {kind: command, command: " + command + "}}}"; }

TEST(RewardConfig, ACommandIsALineOrAListOfWords) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words_of(command_file("judge | tee log")), Words({"judge | tee log"}));
  EXPECT_EQ(words_of(command_file("[judge, --level, 3]")), Words({"judge", "--level", "3"}));
  // A program without arguments is no line of the shell: its path may have blanks.
  EXPECT_EQ(words_of(command_file("[./my judge.sh]")), Words({"/usr/bin/env", "./my judge.sh"}));
  const std::string where = "x.yaml:1: reward.sources.a.command: expected a shell command line, or a list of a program and its arguments";
  EXPECT_EQ(error_of_file(command_file("[]")), where + ", found []");
  EXPECT_EQ(error_of_file(command_file("{x: 1}")), where + ", found {x: 1}");
  EXPECT_EQ(error_of_file(command_file("[judge, [3]]")), where + ", found [judge, [3]]");
}

TEST(RewardConfig, WordsOfACommandArePassedAsWritten) {
  const std::string words = "[judge, 1.10, 007, 1e3, yes, inf, null, ~, 'a b']";
  const std::vector<std::string> expected = {"judge", "1.10", "007", "1e3", "yes", "inf", "null", "~", "a b"};
  EXPECT_EQ(words_of(command_file(words)), expected);
  EXPECT_EQ(words_of("", {"reward.sources.a={kind: command, command: " + words + "}"}), expected);
  EXPECT_EQ(words_of("", {"reward.sources.a.kind=command", "reward.sources.a.command=" + words}), expected);
  EXPECT_EQ(words_of(command_file("yes")), std::vector<std::string>{"yes"});
}

}  // namespace
}  // namespace kedge
