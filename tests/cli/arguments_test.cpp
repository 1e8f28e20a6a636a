#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge::cli {
namespace {

using kedge::testing::error_of;
using ::testing::ElementsAre;

struct Options {
  std::string model;
  std::string prompt;
  int64_t max_tokens = 16;
  double temperature = 1.0;
  bool greedy = false;
  bool stream = true;
  std::optional<bool> tied;
  std::vector<std::string> input;

  void fields(auto&& field) {
    field("model", model, "a model folder", required());
    field("prompt", prompt, "text to go on from");
    field("max_tokens", max_tokens, "new tokens at most", at_least(1));
    field("temperature", temperature, "of sampling", at_least(0));
    field("greedy", greedy, "take the likeliest token");
    field("stream", stream, "print as it comes");
    field("tied", tied, "or as the file says");
    field("input", input, "files");
  }
};

Options parsed(const Arguments& arguments) {
  Options options;
  parse_arguments(describe(options), arguments, {"model"});
  return options;
}

TEST(Arguments, FlagsSetFields) {
  const Options options = parsed({"m", "--max-tokens", "5", "--temperature=0.5", "--greedy", "--no-stream", "--input", "a", "--input=b"});
  EXPECT_EQ(options.model, "m");
  EXPECT_EQ(options.max_tokens, 5);
  EXPECT_EQ(options.temperature, 0.5);
  EXPECT_TRUE(options.greedy);
  EXPECT_FALSE(options.stream);
  EXPECT_THAT(options.input, ElementsAre("a", "b"));
}

TEST(Arguments, ASwitchMayBeLeftOpen) {
  EXPECT_EQ(parsed({"m"}).tied, std::nullopt);
  EXPECT_EQ(parsed({"m", "--tied"}).tied, true);
  EXPECT_EQ(parsed({"m", "--no-tied"}).tied, false);
  EXPECT_EQ(parsed({"m", "--tied=false"}).tied, false);
}

TEST(Arguments, ValuesAreTakenAsTheyStand) {
  EXPECT_EQ(parsed({"m", "--prompt", "[INST] {a: ${b}} null"}).prompt, "[INST] {a: ${b}} null");
  EXPECT_EQ(parsed({"m", "--prompt", "null"}).prompt, "null");
  EXPECT_EQ(parsed({"m", "--prompt", "???"}).prompt, "???");
  EXPECT_EQ(parsed({"m", "--prompt", "--greedy"}).prompt, "--greedy");
  EXPECT_EQ(parsed({"--", "--m"}).model, "--m");
}

TEST(Arguments, MistakesAreNamed) {
  EXPECT_EQ(error_of([] { return parsed({"m", "--max-token", "5"}); }), "unknown flag --max-token; nearest: --max-tokens");
  EXPECT_EQ(error_of([] { return parsed({"m", "--max-tokens"}); }), "--max-tokens: expected a value (new tokens at most)");
  EXPECT_EQ(error_of([] { return parsed({"m", "n"}); }), "unexpected argument \"n\"");
  EXPECT_EQ(error_of([] { return parsed({"m", "--max-tokens", "0"}); }), "command line: max_tokens: expected at least 1, found 0");
  EXPECT_EQ(error_of([] { return parsed({}); }), "missing MODEL (a model folder)");
}

TEST(Arguments, AConfigurationIsAFileAndOverrides) {
  const ConfigArguments plain = read_config_arguments({"configs/ppo.yaml", "a.b=1", "++c={d: 2}", "~e"});
  EXPECT_EQ(plain.file, "configs/ppo.yaml");
  EXPECT_THAT(plain.overrides, ElementsAre("a.b=1", "++c={d: 2}", "~e"));
  EXPECT_EQ(read_config_arguments({"--config-path=conf", "--config-name", "gpt_ppo", "a=1"}).file, "conf/gpt_ppo.yaml");
  EXPECT_EQ(read_config_arguments({"--config-name=x.yaml"}).file, "./x.yaml");
  EXPECT_FALSE(read_config_arguments({"a=1"}).file.has_value());
  EXPECT_EQ(error_of([] { return read_config_arguments({"a.yaml", "b.yaml"}); }), "two configuration files: a.yaml and b.yaml");
  EXPECT_EQ(error_of([] { return read_config_arguments({"--lr", "1"}); }), "unknown flag --lr; settings are given as key=value");
  EXPECT_EQ(error_of([] { return read_config_arguments({"--config-path", "x"}); }), "--config-path requires --config-name");
}

TEST(Arguments, HelpListsEveryFlag) {
  Options options;
  const std::string help = flags_help(describe(options), {"model"});
  EXPECT_NE(help.find("  MODEL                   a model folder (required)\n"), std::string::npos) << help;
  EXPECT_NE(help.find("  --max-tokens <integer>  new tokens at most (at least 1) [16]\n"), std::string::npos) << help;
}

TEST(Arguments, AListAmongThePlacesTakesAllThatCome) {
  Options options;
  parse_arguments(describe(options), {"m", "a", "--max-tokens", "3", "b=c", "--", "--d"}, {"model", "input"});
  EXPECT_EQ(options.model, "m");
  EXPECT_EQ(options.max_tokens, 3);
  EXPECT_THAT(options.input, ElementsAre("a", "b=c", "--d"));
}

}  // namespace
}  // namespace kedge::cli
