#include "kedge/algo/supervised/reference_cache.h"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace kedge {
namespace {

using testing::TempFolder;

TEST(ReferenceCache, OtherIdsOrAnotherBoundaryAreOtherRows) {
  const std::string key = response_key({1, 2, 3}, 1);
  EXPECT_EQ(key.size(), 32U);
  EXPECT_EQ(response_key({1, 2, 3}, 1), key);
  EXPECT_NE(response_key({1, 2, 3}, 2), key);
  EXPECT_NE(response_key({1, 2, 4}, 1), key);
  EXPECT_NE(response_key({1, 2}, 1), key);
  EXPECT_NE(response_key({3, 2, 1}, 1), key);
}

TEST(ReferenceCache, TextGivesTheSameBitsBack) {
  const std::vector<KeptLogprob> values = {{"a", -123.456789F}, {"b", -1e-30F}, {"c", 0}, {"d", -3.4e38F}};
  const auto back = read_logprobs(logprobs_text(values));
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ((*back)[i].key, values[i].key);
    EXPECT_EQ((*back)[i].logprob, values[i].logprob);
  }
  EXPECT_TRUE(read_logprobs(logprobs_text({}))->empty());
}

TEST(ReferenceCache, DamagedTextIsNotRead) {
  const std::string text = logprobs_text({{"a", -1}, {"b", -2}});
  std::string flipped = text;
  flipped[text.find("-1")] = '+';
  for (const std::string& damaged :
       {flipped, text.substr(0, text.size() - 1), text.substr(3), text + "x", std::string(), std::string("end ")})
    EXPECT_FALSE(read_logprobs(damaged)) << damaged;
}

TEST(ReferenceCache, TheFirstValueOfARowStays) {
  ReferenceCache cache;
  cache.add({{"a", -1}});
  cache.add({{"a", -2}, {"b", -3}});
  EXPECT_EQ(cache.find("a"), -1.0F);
  EXPECT_EQ(cache.find("b"), -3.0F);
  EXPECT_FALSE(cache.find("c"));
}

TEST(ReferenceFolder, EveryReferenceHasItsOwn) {
  const TempFolder temp;
  const ReferenceFolder one(temp.path(), "one"), other(temp.path(), "other");
  EXPECT_TRUE(one.read().empty());
  one.write({{"a", -1}});
  one.write({{"b", -2}});
  one.write({});
  EXPECT_EQ(one.read().size(), 2U);
  EXPECT_TRUE(other.read().empty());
}

TEST(ReferenceFolder, ADamagedFileIsLeftOut) {
  const TempFolder temp;
  const ReferenceFolder folder(temp.path(), "one");
  folder.write({{"a", -1}});
  folder.write({{"b", -2}});
  write_atomic(list_folder(folder.path()).front(), "rubbish");
  write_atomic(folder.path() / "notes", "not ours");
  EXPECT_EQ(folder.read().size(), 1U);
}

}  // namespace
}  // namespace kedge
