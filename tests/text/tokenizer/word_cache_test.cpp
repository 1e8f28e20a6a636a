#include "kedge/text/tokenizer/word_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WordCache, RemembersWhatWasStored) {
  const WordCache cache;
  cache.local().store("word", TokenIds{1, 2, 3});
  EXPECT_THAT(cache.local().find("word"), ElementsAre(1, 2, 3));
  EXPECT_THAT(cache.local().find("wor"), IsEmpty());
  EXPECT_THAT(cache.local().find(""), IsEmpty());
}

TEST(WordCache, LeavesOutWhatDoesNotFit) {
  const WordCache cache;
  const std::string longest(30, 'x');
  cache.local().store(longest, TokenIds(8, 7));
  EXPECT_EQ(cache.local().find(longest).size(), 8U);
  cache.local().store(longest + "x", TokenIds{1});
  EXPECT_THAT(cache.local().find(longest + "x"), IsEmpty());
  cache.local().store("many ids", TokenIds(9, 7));
  EXPECT_THAT(cache.local().find("many ids"), IsEmpty());
}

TEST(WordCache, TwoCachesAndTwoThreadsShareNothing) {
  const WordCache first, second;
  first.local().store("word", TokenIds{1});
  EXPECT_THAT(second.local().find("word"), IsEmpty());
  std::thread([&] { EXPECT_THAT(first.local().find("word"), IsEmpty()); }).join();
  EXPECT_THAT(first.local().find("word"), ElementsAre(1));
}

TEST(WordCache, KeepsTheTablesUsedLast) {
  const std::vector<WordCache> caches(5);
  caches[0].local().store("word", TokenIds{1});
  for (size_t i = 1; i < 4; ++i) static_cast<void>(caches[i].local());
  EXPECT_THAT(caches[0].local().find("word"), ElementsAre(1));
  for (size_t i = 1; i < 5; ++i) static_cast<void>(caches[i].local());
  EXPECT_THAT(caches[0].local().find("word"), IsEmpty());  // four others have come since
}

}  // namespace
}  // namespace kedge
