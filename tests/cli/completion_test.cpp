#include "cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace kedge::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Kind = CompletionRow::Kind;

std::string show_help() {
  return "  RUN                the folder of a run\n"
         "  --sort reward | kl | length\n"
         "                     highest first, and then all the others, in the order\n"
         "                     of the step\n"
         "  --out <text>       the file to write\n"
         "  --model <text>     a model folder\n"
         "  --limit <integer>  how many\n"
         "  --full             texts whole\n";
}
std::string data_help() {
  return "kedge data check\n  FILE            rows\n  --as a | b      what rows are\n\n"
         "kedge data prepare hh: raw data\n  INPUT           raw\n  --prompts <text>  the file to write\n";
}
std::string no_help() { return ""; }
std::string serve_help() { return "  --token-file FILE    a file with a word\n  --beside 'COMMAND'   another\n"; }
std::string config_help() { return "  NAME    which\n  --yaml  as a file\n"; }

const std::vector<Command> kToys = {
    {"reinforce", "Training", "online training", "", nullptr, no_help},
    {"serve", "Training", "servers", "", nullptr, serve_help,
     [] {
       return std::vector<std::string>{"reward", "critic"};
     }},
    {"plan", "Training", "what a run takes", "", nullptr, no_help,
     [] {
       return std::vector<std::string>{"reinforce", "serve reward", "serve critic"};
     }},
    {"data", "Data", "data files", "", nullptr, data_help,
     [] {
       return std::vector<std::string>{"check", "prepare hh"};
     }},
    {"show", "Look", "answers", "", nullptr, show_help},
    {"config", "Look", "keys", "", nullptr, config_help,
     [] {
       return std::vector<std::string>{"sft", "metrics"};
     }},
};

// The names of a kind behind a path.
std::vector<std::string> names(const std::string& path, Kind kind) {
  std::vector<std::string> found;
  for (const CompletionRow& row : completion_rows(kToys))
    if (row.path == path && row.kind == kind) found.push_back(row.name);
  return found;
}

CompletionRow row_of(const std::string& path, const std::string& name) {
  for (const CompletionRow& row : completion_rows(kToys))
    if (row.path == path && row.name == name) return row;
  ADD_FAILURE() << "no row " << path << " " << name;
  return {};
}

TEST(Completion, CommandsAndWhatTheyDo) {
  EXPECT_THAT(names("", Kind::word), ElementsAre("reinforce", "serve", "plan", "data", "show", "config", "help"));
  EXPECT_THAT(names("help", Kind::word), ElementsAre("reinforce", "serve", "plan", "data", "show", "config"));
  EXPECT_THAT(names("", Kind::flag), ElementsAre("--help", "--version"));
  EXPECT_EQ(row_of("", "show").about, "answers");
}

TEST(Completion, WordsBehindACommand) {
  EXPECT_THAT(names("serve", Kind::word), ElementsAre("reward", "critic"));
  EXPECT_THAT(names("data", Kind::word), ElementsAre("check", "prepare"));
  EXPECT_THAT(names("data prepare", Kind::word), ElementsAre("hh"));
  EXPECT_THAT(names("plan", Kind::word), ElementsAre("reinforce", "serve"));  // once, though two phrases begin with it
  EXPECT_THAT(names("plan serve", Kind::word), ElementsAre("reward", "critic"));
  EXPECT_THAT(names("config", Kind::word), ElementsAre("sft", "metrics"));
}

TEST(Completion, FlagsWithTheirValues) {
  EXPECT_THAT(names("show", Kind::flag), ElementsAre("--sort", "--out", "--model", "--limit", "--full", "--help"));
  EXPECT_EQ(row_of("show", "--sort").values, "reward|kl|length");
  EXPECT_EQ(row_of("show", "--sort").about, "highest first, and then all the others, in the order of the step");
  EXPECT_EQ(row_of("show", "--out").values, ":files");
  EXPECT_EQ(row_of("show", "--model").values, ":folders");
  EXPECT_EQ(row_of("show", "--limit").values, "-");
  EXPECT_EQ(row_of("show", "--full").values, "");
  EXPECT_EQ(row_of("serve", "--token-file").values, ":files");
  EXPECT_EQ(row_of("serve", "--beside").values, "-");
}

TEST(Completion, PartsOfACommandHaveTheirOwnFlags) {
  EXPECT_THAT(names("data check", Kind::flag), ElementsAre("--as"));
  EXPECT_THAT(names("data prepare hh", Kind::flag), ElementsAre("--prompts"));
  EXPECT_THAT(names("data", Kind::flag), ElementsAre("--help"));
}

TEST(Completion, PlacesOfArguments) {
  EXPECT_THAT(names("show", Kind::place), ElementsAre("RUN"));
  EXPECT_EQ(row_of("show", "RUN").values, ":folders");
  EXPECT_EQ(row_of("data check", "FILE").values, ":files");
  EXPECT_EQ(row_of("reinforce", "CONFIG").values, ":yaml");
  EXPECT_THAT(names("config", Kind::place), IsEmpty());  // its words stand there
}

TEST(Completion, WhichConfigurationACommandTakes) {
  EXPECT_THAT(names("reinforce", Kind::config), ElementsAre("reinforce"));
  EXPECT_THAT(names("serve reward", Kind::config), ElementsAre("serve_reward"));
  EXPECT_THAT(names("plan serve critic", Kind::config), ElementsAre("serve_critic"));
  EXPECT_THAT(names("plan reinforce", Kind::config), ElementsAre("reinforce"));
  EXPECT_THAT(names("serve", Kind::config), IsEmpty());
  EXPECT_THAT(names("config sft", Kind::config), IsEmpty());  // it takes no settings
}

TEST(Completion, KeysWithTheirValues) {
  EXPECT_THAT(row_of("@reinforce", "trainer.reinforce.baseline").values, HasSubstr("group_mean|group_norm"));
  EXPECT_EQ(row_of("@reinforce", "model.data.add_bos").values, "true|false");
  EXPECT_EQ(row_of("@reinforce", "model.optim.lr").values, "-");
  EXPECT_EQ(row_of("@reinforce", "pretrained_checkpoint.restore_from_path").values, ":folders");
  EXPECT_THAT(names("@reinforce", Kind::key), Contains("reward.sources."));  // a map: the names below are the user's
  EXPECT_THAT(names("@reinforce", Kind::key), Contains("remote_rm.host"));   // another name of a key
  EXPECT_THAT(names("@reinforce", Kind::key), Not(Contains("trainer")));
}

TEST(Completion, ALineHasFiveParts) {
  const std::string table = completion_table(kToys);
  EXPECT_THAT(table, HasSubstr("show\tf\t--sort\treward|kl|length\thighest first"));
  EXPECT_THAT(table, HasSubstr("\tw\tserve\t\tservers\n"));
  size_t begin = 0;
  while (begin < table.size()) {
    const size_t end = table.find('\n', begin);
    ASSERT_EQ(std::count(table.begin() + static_cast<int64_t>(begin), table.begin() + static_cast<int64_t>(end), '\t'), 4)
        << table.substr(begin, end - begin);
    begin = end + 1;
  }
}

}  // namespace
}  // namespace kedge::cli
