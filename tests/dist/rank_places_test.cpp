#include "kedge/dist/rank_places.h"

#include <gtest/gtest.h>

namespace kedge {
namespace {

TEST(RankPlaces, AGroupOfOneKnowsItsOwn) {
  const std::vector<RankPlace> places = gather_places(Group::single(), "0000:1b:00.0");
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places[0].gpu, "0000:1b:00.0");
  EXPECT_GT(places[0].machine.size(), 1U);
  EXPECT_EQ(places, gather_places(Group::single(), "0000:1b:00.0")) << "a machine keeps its name";
  EXPECT_TRUE(on_one_machine(places));
  EXPECT_FALSE(shares_gpu(places, 0));
}

TEST(RankPlaces, TheSameBusAddressOnTwoMachinesIsTwoGpus) {
  const std::vector<RankPlace> places{{"a", "1"}, {"a", "2"}, {"b", "1"}, {"b", "2"}};
  EXPECT_FALSE(on_one_machine(places));
  for (int rank = 0; rank < 4; ++rank) EXPECT_FALSE(shares_gpu(places, rank));
}

TEST(RankPlaces, TellsWhoSharesAGpu) {
  const std::vector<RankPlace> places{{"a", "1"}, {"a", "2"}, {"a", "1"}};
  EXPECT_TRUE(on_one_machine(places));
  EXPECT_TRUE(shares_gpu(places, 0));
  EXPECT_FALSE(shares_gpu(places, 1));
  EXPECT_TRUE(shares_gpu(places, 2));
  EXPECT_TRUE(some_share_gpus(places));
  EXPECT_FALSE(some_share_gpus(std::span(places).first(2)));
}

TEST(RankPlaces, RanksWithoutGpusShareNone) {
  const std::vector<RankPlace> places{{"a", ""}, {"a", ""}};
  EXPECT_FALSE(shares_gpu(places, 0));
}

}  // namespace
}  // namespace kedge
