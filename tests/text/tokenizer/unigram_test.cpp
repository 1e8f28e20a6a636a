#include "kedge/text/tokenizer/unigram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;

TokenIds encode(const UnigramModel& model, std::string_view word) {
  TokenIds ids, again;
  const std::vector<WordSpan> words = {{0, word.size()}};
  model.encode(word, words, ids);
  model.encode(word, words, again);
  EXPECT_EQ(ids, again) << "remembered wrongly";
  return ids;
}

TEST(Unigram, TakesTheCutOfTheHighestSum) {
  const UnigramModel model({{"<unk>", 0}, {"a", -1}, {"b", -1}, {"ab", -3}, {"c", -2}, {"bc", -2.5}}, 0, false, "here");
  EXPECT_THAT(encode(model, "ab"), ElementsAre(1, 2));   // -2 against -3
  EXPECT_THAT(encode(model, "abc"), ElementsAre(1, 5));  // a bc: -3.5; a b c: -4; ab c: -5
}

TEST(Unigram, OfEqualSumsTheOneFoundFirstWins) {
  const UnigramModel model({{"<unk>", 0}, {"a", -1}, {"aa", -1}}, 0, false, "here");
  EXPECT_THAT(encode(model, "aaa"), ElementsAre(1, 2));  // behind the first a, before the other way is known
}

TEST(Unigram, ARunOfUnknownCharactersIsOne) {
  const UnigramModel model({{"<unk>", 0}, {"a", -1}}, 0, false, "here");
  EXPECT_THAT(encode(model, "xyaz"), ElementsAre(0, 1, 0));
}

TEST(Unigram, FallsBackToBytes) {
  const UnigramModel model({{"<unk>", 0}, {"a", -1}, {"<0xC3>", -5}, {"<0xA9>", -5}}, 0, true, "here");
  EXPECT_THAT(encode(model, "a\u00E9"), ElementsAre(1, 2, 3));
  EXPECT_THAT(encode(model, "a\u00E8"), ElementsAre(1, 0));
}

TEST(Unigram, NamesWhatIsWrong) {
  EXPECT_EQ(testing::error_of([] { return UnigramModel({{"a", -1}}, 4, false, "here"); }), "here.unk_id: 4 is not an id of the 1 pieces");
  EXPECT_EQ(testing::error_of([] {
              return UnigramModel({{"a", -1}, {"a", -2}}, 0, false, "here");
            }),
            "here.vocab[1]: the piece \"a\" occurs twice, or there are too many");
  EXPECT_EQ(testing::error_of([] {
              return encode(UnigramModel({{"a", -1}}, std::nullopt, false, "here"), "x");
            }),
            "the text has a character that is not in the vocabulary, and the tokenizer has no unk_id");
}

TEST(Unigram, SinglePrecisionStartsAgainBeforeItRunsOut) {
  // Behind 100,000 the sums are too large for float to tell a hundredth; starting again keeps the better cut the better one.
  const std::vector<UnigramSearch<float>::Piece> pieces = {{"a", 0, -1000.0F}, {"b", 1, -0.01F}, {"c", 2, -0.01F}, {"bc", 3, -0.019F}};
  const UnigramSearch<float> search(pieces, -2000.0F);
  std::vector<UnigramSearch<float>::Segment> segments;
  const std::string text = std::string(200, 'a') + "bc";
  search.run(text, segments);
  ASSERT_EQ(segments.size(), 201U);
  EXPECT_EQ(segments.back().id, 3);
}

}  // namespace
}  // namespace kedge
