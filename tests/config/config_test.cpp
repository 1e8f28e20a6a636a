#include "kedge/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/config_toys.h"
#include "tests/support/expect_error.h"
#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using testing::load_toy;
using testing::Mode;
using testing::ToyConfig;

std::string toy_error(const std::string& yaml, std::vector<std::string> overrides = {}, bool with_model = true) {
  return error_of([&] { return load_toy(yaml, std::move(overrides), with_model); });
}

TEST(Config, EveryTypeIsReadFromYaml) {
  const ToyConfig config = load_toy(R"(
max_steps: 1e3
shuffle: no
mode: min
memory: 2MiB
resume: 2024
end_strings: ["a b", '', 12]
limits: {a: 1, b: 2}
data_prefix: {train: [0.3, x.jsonl], test: null}
optim:
  lr: 2e-6
  betas: [0.5]
  clip: null
logs:
sources:
  - name: length
  - {name: model, weight: 0.5}
)")
                               .config;
  EXPECT_EQ(config.max_steps, 1000);
  EXPECT_FALSE(config.shuffle);
  EXPECT_EQ(config.mode, Mode::min);
  EXPECT_EQ(config.memory.bytes, 2 << 20);
  EXPECT_EQ(config.resume, "2024");
  EXPECT_THAT(config.end_strings, ElementsAre("a b", "", "12"));
  EXPECT_EQ(config.limits.at("b"), 2);
  EXPECT_EQ(config.data_prefix.dump(), R"({"train": [0.3, "x.jsonl"], "test": null})");
  EXPECT_EQ(config.optim.lr, 2e-6);
  EXPECT_THAT(config.optim.betas, ElementsAre(0.5));
  EXPECT_FALSE(config.optim.clip.has_value());
  EXPECT_FALSE(config.logs.has_value());
  ASSERT_EQ(config.sources.size(), 2U);
  EXPECT_EQ(config.sources[0].weight, 1.0);
  EXPECT_EQ(config.sources[1].weight, 0.5);
}

TEST(Config, ErrorTexts) {
  EXPECT_EQ(toy_error("optim:\n  lrr: 1\n"), "x.yaml:2: unknown key \"optim.lrr\"; nearest: optim.lr");
  EXPECT_EQ(toy_error("max_steps: many\n"), "x.yaml:1: max_steps: expected an integer, found many");
  EXPECT_EQ(toy_error("max_steps: 1.5\n"), "x.yaml:1: max_steps: expected an integer, found 1.5");
  EXPECT_EQ(toy_error("max_steps: \"5\"\n"), "x.yaml:1: max_steps: expected an integer, found \"5\"");
  EXPECT_EQ(toy_error("shuffle: 3\n"), "x.yaml:1: shuffle: expected true or false, found 3");
  EXPECT_EQ(toy_error("mode: best\n"), "x.yaml:1: mode: expected min | max, found best");
  EXPECT_EQ(toy_error("end_strings: x\n"), "x.yaml:1: end_strings: expected a list, found x");
  EXPECT_EQ(toy_error("optim: 3\n"), "x.yaml:1: optim: expected a section, found 3");
  EXPECT_EQ(toy_error("", {"optim=null"}), "command line: optim: expected a section, found null");
  EXPECT_EQ(toy_error("memory: lots\n"), "x.yaml:1: memory: expected a number of bytes such as 512MiB, found lots");
  EXPECT_EQ(toy_error("model: [a]\n", {}, false), "x.yaml:1: model: expected text, found [a]");
  EXPECT_EQ(toy_error("max_steps: -2\n"), "x.yaml:1: max_steps: expected at least -1, found -2");
  EXPECT_EQ(toy_error("optim:\n  lr: 1\n"), "x.yaml:2: optim.lr: expected above 0 and below 1, found 1");
  EXPECT_EQ(toy_error("optim: {betas: [0.9, 1.0]}\n"), "x.yaml:1: optim.betas: expected at least 0 and below 1, found [0.9, 1.0]");
  EXPECT_EQ(toy_error("memory: 1KB\n"), "x.yaml:1: memory: expected at least 1024, found 1KB");
  EXPECT_EQ(toy_error("max_steps: ${val_interval}\nval_interval: ${max_steps}\n"),
            "x.yaml:1: max_steps: circular reference: max_steps -> val_interval -> max_steps");
  EXPECT_EQ(toy_error("a: 1\nb: [1, 2\nc: 3\n"), "x.yaml:3:2: not valid YAML: end of sequence flow not found");
  EXPECT_EQ(toy_error("", {}, false), "missing required key \"model\" (folder of the model); set it in the file or with model=...");
  EXPECT_EQ(toy_error("model: ???\n", {}, false),
            "x.yaml:1: missing required key \"model\" (folder of the model); set it in the file or with model=...");
  EXPECT_EQ(toy_error("sources:\n  - weight: 1\n"),
            "x.yaml:2: missing required key \"sources.0.name\" (which reward); set it in the file or with sources.0.name=...");
  EXPECT_EQ(toy_error("- 1\n"), "x.yaml:1: expected keys and values at the top level, found [1]");
}

TEST(Config, EverythingWrongIsReportedAtOnce) {
  EXPECT_EQ(toy_error("max_step: 3\nshuffle: maybe\n", {"optim.lr=2"}),
            "x.yaml:1: unknown key \"max_step\"; nearest: max_steps\n"
            "x.yaml:2: shuffle: expected true or false, found maybe\n"
            "command line: optim.lr: expected above 0 and below 1, found 2");
}

TEST(Config, OverridesChangeAddSetAndDelete) {
  EXPECT_EQ(load_toy("max_steps: 5\n", {"max_steps=6", "max_steps=7"}).config.max_steps, 7);
  EXPECT_EQ(load_toy("", {"+max_steps=6"}).config.max_steps, 6);
  EXPECT_EQ(toy_error("max_steps: 5\n", {"+max_steps=6"}),
            "command line: +max_steps=6: key \"max_steps\" is set already; change it with max_steps=... or ++max_steps=...");
  EXPECT_EQ(load_toy("max_steps: 5\n", {"++max_steps=6"}).config.max_steps, 6);
  EXPECT_EQ(load_toy("max_steps: 5\n", {"~max_steps"}).config.max_steps, 100);
  EXPECT_FALSE(load_toy("", {"~optim.clip"}).config.optim.clip.has_value());
  EXPECT_EQ(toy_error("", {"max_stepz=1"}), "command line: unknown key \"max_stepz\"; nearest: max_steps");
  EXPECT_EQ(toy_error("", {"~max_stepz"}), "command line: ~max_stepz: unknown key \"max_stepz\"; nearest: max_steps");
}

TEST(Config, KeysWithoutEffectAndThoseOfTheFileCanBeDeleted) {
  EXPECT_THAT(load_toy("optim: {bucket_cap_mb: 200}\n", {"~optim.bucket_cap_mb"}).warnings, ElementsAre());
  EXPECT_THAT(load_toy("", {"~optim.bucket_cap_mb", "~optim.fused", "~optim.other.a"}).warnings, ElementsAre());
  EXPECT_THAT(load_toy("optim: {fused: false}\nmax_stepz: 3\n", {"~optim.fused", "~max_stepz"}).warnings, ElementsAre());
  EXPECT_EQ(load_toy("defaults:\n  - base\nmax_steps: 3\n", {"~defaults"}).config.max_steps, 3);
  EXPECT_EQ(toy_error("", {"~optim.fuse.a"}).find("command line: ~optim.fuse.a: unknown key \"optim.fuse.a\""), 0U);
}

TEST(Config, AWholeBlockIsMergedOrReplaced) {
  const auto merged = load_toy("optim: {lr: 0.5, clip: 2}\n", {"optim={lr:0.25}"}).config.optim;
  EXPECT_EQ(merged.lr, 0.25);
  EXPECT_EQ(merged.clip, 2.0);
  const auto replaced = load_toy("optim: {lr: 0.5, clip: 2}\n", {"~optim", "++optim={lr:0.25}"}).config.optim;
  EXPECT_EQ(replaced.lr, 0.25);
  EXPECT_EQ(replaced.clip, 1.0);
  EXPECT_FALSE(load_toy("logs: {every: 3}\n", {"++logs=null"}).config.logs.has_value());
}

TEST(Config, ASectionThatIsNullByDefaultComesWithItsDefaults) {
  const auto logs = load_toy("", {"logs.every=3"}).config.logs;
  ASSERT_TRUE(logs.has_value());
  EXPECT_EQ(logs->folder, "runs");
  EXPECT_EQ(logs->keep, 3);  // follows every
}

TEST(Config, AHeadingWithNothingBelowItChangesNothing) { EXPECT_EQ(load_toy("optim:\n").config.optim.lr, 1e-3); }

TEST(Config, DefaultsFollowOtherKeysUntilTheyAreSet) {
  EXPECT_EQ(load_toy("").config.save_interval, 10);
  EXPECT_EQ(load_toy("", {"val_interval=25"}).config.save_interval, 25);
  EXPECT_EQ(load_toy("save_interval: 3\n", {"val_interval=25"}).config.save_interval, 3);
}

TEST(Config, ReferencesAndExpressionsResolveAfterAllOverrides) {
  EXPECT_EQ(load_toy("max_steps: ${multiply:${val_interval},4}\n", {"val_interval=5"}).config.max_steps, 20);
  EXPECT_EQ(load_toy("optim: {lr: '${multiply:1e-6,1.001}'}\n").config.optim.lr, 1e-6 * 1.001);
  EXPECT_EQ(load_toy("max_steps: ${lr_steps}\n", {"++lr_steps=7"}).config.max_steps, 7);
}

TEST(Config, AliasesAreTheSameKey) {
  EXPECT_EQ(load_toy("lr: 0.5\n").config.optim.lr, 0.5);
  EXPECT_EQ(load_toy("", {"lr=0.5"}).config.optim.lr, 0.5);
  EXPECT_EQ(load_toy("", {"optimizer.lr=0.5"}).config.optim.lr, 0.5);
  EXPECT_EQ(load_toy("lr: 0.5\noptim: {lr: 0.5}\n").config.optim.lr, 0.5);
  EXPECT_EQ(toy_error("lr: 0.5\noptim: {lr: 0.25}\n"), "x.yaml:1: lr (0.5) and optim.lr (0.25) are the same key with two values");
  EXPECT_EQ(load_toy("max_steps: ${int_div:8,3}\nlr: 0.5\noptim: {clip: '${lr}'}\n").config.optim.clip, 0.5);
}

struct Aliased {
  struct Server {
    std::string ip = "a";
    int64_t tries = 1;
    void fields(auto&& field) {
      field("ip", ip, "its host");
      field("tries", tries, "how often it is asked");
      field.alias("host", "ip");
      field.alias("retry.count", "tries");
    }
  };
  Server server;
  double speed = 1;
  void fields(auto&& field) {
    field("server", server, "a server");
    field("speed", speed, "a key beside it");
    field.alias("server.speed", "speed");
  }
};

TEST(Config, AliasesInsideAMapAreTheSameKeysInAFileAndOnTheCommandLine) {
  const std::string map = "{host: b, retry: {count: 2}, speed: 0.5}";
  struct Given {
    std::string yaml;
    std::vector<std::string> overrides;
  };
  for (const Given& given : {Given{"server: " + map + "\n", {}}, Given{"server: {ip: c, tries: 3}\nspeed: 4\n", {"server=" + map}},
                             Given{"", {"++server=" + map}}, Given{"", {"server.host=b", "server.retry={count: 2}", "server.speed=0.5"}}}) {
    Aliased config;
    EXPECT_THAT(load_section(describe(config), {"x.yaml", given.yaml}, given.overrides), ElementsAre());
    EXPECT_EQ(config.server.ip, "b");
    EXPECT_EQ(config.server.tries, 2);
    EXPECT_EQ(config.speed, 0.5);
  }
  Aliased config;
  const auto load_both = [&] { return load_section(describe(config), ConfigText(), {"server={host: b, ip: c}"}); };
  EXPECT_EQ(error_of(load_both), "command line: server.host (b) and server.ip (c) are the same key with two values");
}

// NeMo-Aligner's files refer to sizes that only its checkpoints' own configurations have.
TEST(Config, AKeyWithOnePossibleValueCanBeReferredToWithoutBeingThere) {
  EXPECT_EQ(load_toy("resume: '${optim.fused}'\n").config.resume, "true");
  EXPECT_EQ(toy_error("resume: '${optim.fuse}'\n").find("x.yaml:1: resume: no key \"optim.fuse\" to refer to"), 0U);
}

TEST(Config, ARefusedSectionWithNothingInItPasses) {
  EXPECT_THAT(load_toy("optim: {other: {a: null, b: {c: null}}}\n").warnings, ElementsAre());
  EXPECT_EQ(toy_error("optim: {other: {a: null, b: 1}}\n").find("x.yaml:1: optim.other: there is no other"), 0U);
}

TEST(Config, IgnoredRefusedAndUnreadKeysAreSaid) {
  EXPECT_THAT(load_toy("optim: {bucket_cap_mb: 200}\n").warnings,
              ElementsAre("x.yaml:1: optim.bucket_cap_mb is ignored: there are no buckets here"));
  EXPECT_EQ(toy_error("optim: {fused: false}\n"), "x.yaml:1: optim.fused: only the fused form exists (found false)");
  EXPECT_THAT(load_toy("optim: {fused: true}\n").warnings, ElementsAre());
  EXPECT_THAT(load_toy("", {"++max_stepz=3"}).warnings, ElementsAre("command line: unused key \"max_stepz\"; nearest: max_steps"));
  EXPECT_THAT(load_toy("", {"++flask_server.enable=True"}).warnings, ElementsAre("command line: unused key \"flask_server\""));
}

TEST(Config, TheReferencesDefaultsListPassesWhenItIsEmpty) {
  EXPECT_EQ(load_toy("defaults:\n  - optional tp_overlap@model.ub:\n  - _self_\nmax_steps: 3\n").config.max_steps, 3);
  EXPECT_EQ(toy_error("defaults:\n  - base\n"),
            "x.yaml:2: defaults: config groups are not supported (base); write its keys into this file");
}

TEST(Config, TheDumpReadsBackToTheSameValues) {
  ToyConfig config = load_toy("sources: [{name: a}, {name: b}]\nlimits: {x: 1}\n", {"logs.every=2"}).config;
  config.model = "a: \"b\" \\${c} ${d} ??? \n\t\x01 é # no comment";
  config.resume = "null";
  config.end_strings = {"", "true", "1e5", "~", "- x", "???", "${a}", "\\${b}"};
  config.data_prefix = Json::parse(R"({"train": ["12", 12, 1.0, null, true, "${x}"], "a b": {}})");
  config.optim.lr = 0.1 + 0.2;
  const std::string dump = dump_config(describe(config));
  ToyConfig again;
  EXPECT_THAT(load_section(describe(again), {"dump", dump}, {}), ElementsAre());
  EXPECT_EQ(dump_config(describe(again)), dump);
  EXPECT_EQ(again.model, config.model);
  EXPECT_EQ(again.resume, config.resume);
  EXPECT_EQ(again.end_strings, config.end_strings);
  EXPECT_EQ(again.data_prefix, config.data_prefix);
  EXPECT_EQ(again.optim.lr, config.optim.lr);
  EXPECT_EQ(again.sources.size(), 2U);
}

TEST(Config, TheCommentedFileIsAConfigurationOfDefaults) {
  ToyConfig config;
  const std::string yaml = commented_yaml(describe(config));
  EXPECT_NE(yaml.find("# cap on steps; -1: none (steps, at least -1) [integer]\nmax_steps: 100\n"), std::string::npos);
  EXPECT_NE(yaml.find("model: ???\n"), std::string::npos);
  EXPECT_NE(yaml.find("# the optimizer\noptim:\n  # learning rate (above 0 and below 1) [number]\n  lr: 0.001\n"), std::string::npos);
  ToyConfig again;
  EXPECT_THAT(load_section(describe(again), {"c", yaml}, {"model=m"}), ElementsAre());
  EXPECT_EQ(again.save_interval, 10);
}

TEST(Config, TheTableHasARowForEveryKey) {
  ToyConfig config;
  const std::vector<KeyRow> rows = key_rows(describe(config));
  EXPECT_EQ(rows.at(0).default_value, "(required)");
  EXPECT_EQ(rows.at(3).default_value, "${.val_interval}");
  const auto lr = std::find_if(rows.begin(), rows.end(), [](const KeyRow& row) { return row.key == "optim.lr"; });
  ASSERT_NE(lr, rows.end());
  EXPECT_EQ(lr->type, "number");
  EXPECT_EQ(lr->meaning, "learning rate (above 0 and below 1)");
}

TEST(Config, AFileIsReadAndNamed) {
  const testing::TempFolder folder;
  ToyConfig config;
  load_config(describe(config), folder.file("a.yaml", "model: m\nmax_steps: 3\n"), {"max_steps=4"});
  EXPECT_EQ(config.max_steps, 4);
  const std::string missing = (folder / "b.yaml").string();
  EXPECT_EQ(error_of([&] { load_config(describe(config), missing, {}); }), missing + ": cannot be read: No such file or directory");
}

struct Switched {
  struct Folder {
    bool keep = true;
    std::string name = "a";
    void fields(auto&& field) {
      field("keep", keep, "keep it");
      field("name", name, "its name");
    }
  };
  Folder folder;
  void fields(auto&& field) {
    field("folder", folder, "a section that null switches off", null_means("keep", "false"), null_means("name", "none"));
  }
};

Switched load_switched(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  Switched config;
  static_cast<void>(load_section(describe(config), {"x.yaml", yaml}, overrides));
  return config;
}

TEST(Config, NullSwitchesASectionOffThatSaysHow) {
  EXPECT_FALSE(load_switched("folder: null\n").folder.keep);
  EXPECT_EQ(load_switched("folder: null\n").folder.name, "none");
  EXPECT_FALSE(load_switched("folder: ~\n").folder.keep);
  EXPECT_FALSE(load_switched("folder: {name: b}\n", {"~folder"}).folder.keep);
  EXPECT_EQ(load_switched("folder: {name: b}\n", {"~folder", "++folder={keep: true}"}).folder.name, "a");
  EXPECT_TRUE(load_switched("folder:\n").folder.keep) << "a heading without anything changes nothing";
  EXPECT_FALSE(load_switched("folder: {name: b}\n", {"folder.name=c", "++folder=null"}).folder.keep);
  EXPECT_EQ(load_switched("folder: null\n", {"folder.name=c"}).folder.name, "c");
  EXPECT_TRUE(load_switched("folder: null\n", {"folder.name=c"}).folder.keep) << "what is set later makes it a section again";
}

}  // namespace
}  // namespace kedge
