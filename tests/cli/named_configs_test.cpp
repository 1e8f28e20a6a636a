#include "cli/named_configs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kedge::cli {
namespace {

TEST(NamedConfigs, EveryNameHasKeys) {
  for (const std::string& name : config_names()) {
    const NamedConfig* config = find_config(name);
    ASSERT_NE(config, nullptr) << name;
    EXPECT_FALSE(config->section().fields.empty()) << name;
  }
}

TEST(NamedConfigs, TheKeysAreThoseOfTheCommand) {
  EXPECT_TRUE(find_field(find_config("reinforce")->section(), "trainer.reinforce.num_rollouts_per_prompt").has_value());
  EXPECT_TRUE(find_field(find_config("serve_reward")->section(), "inference.port").has_value());
}

TEST(NamedConfigs, NoneOfAnotherName) { EXPECT_EQ(find_config("reinforced"), nullptr); }

}  // namespace
}  // namespace kedge::cli
