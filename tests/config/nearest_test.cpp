#include "kedge/config/nearest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kedge {
namespace {

using ::testing::ElementsAre;

TEST(Nearest, CountsEdits) {
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("lr", "rl"), 1U);
}

TEST(Nearest, FindsMistypedAndMisplacedKeys) {
  const std::vector<std::string> keys = {"model.optim.lr", "model.optim.weight_decay", "trainer.max_steps", "trainer.max_epochs"};
  EXPECT_THAT(nearest("model.optim.wieght_decay", keys), ElementsAre("model.optim.weight_decay"));
  EXPECT_THAT(nearest("trainer.ppo.max_steps", keys), ElementsAre("trainer.max_steps"));
  EXPECT_THAT(nearest("zebra", keys), ElementsAre());
  EXPECT_EQ(nearest_hint("lr", keys), "; nearest: model.optim.lr");
  EXPECT_EQ(nearest_hint(std::string(100000, 'x'), keys), "");
}

}  // namespace
}  // namespace kedge
