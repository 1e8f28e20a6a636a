#include "kedge/algo/config_sections.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

template <typename T>
std::vector<std::string> names_of() {
  T config;
  std::vector<std::string> names;
  for (const Field& field : describe(config).fields) names.push_back(field.name);
  return names;
}

// The instantiation that everybody links sees the same members as this file does.
TEST(ConfigSections, AreThoseOfTheirConfigurations) {
  ReinforceConfig config;
  const Section section = describe(config);
  const auto named = [&](std::string_view name) {
    return *std::find_if(section.fields.begin(), section.fields.end(), [&](const Field& field) { return field.name == name; });
  };
  config.model.global_batch_size = 77;
  const Section model = named("model").section();
  const auto batch =
      std::find_if(model.fields.begin(), model.fields.end(), [](const Field& field) { return field.name == "global_batch_size"; });
  EXPECT_EQ(batch->get().text, "77");
  const std::vector<std::string> ppo = names_of<PpoConfig>(), reinforce = names_of<ReinforceConfig>();
  EXPECT_NE(std::find(ppo.begin(), ppo.end(), "remote_critic_rm"), ppo.end());
  EXPECT_EQ(std::find(reinforce.begin(), reinforce.end(), "remote_critic_rm"), reinforce.end());
  for (const auto& names :
       {names_of<SftConfig>(), names_of<RmConfig>(), names_of<RsConfig>(), names_of<RewardServerConfig>(), names_of<CriticServerConfig>()})
    EXPECT_NE(std::find(names.begin(), names.end(), "trainer"), names.end());
}

}  // namespace
}  // namespace kedge
