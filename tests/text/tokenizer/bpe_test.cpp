#include "kedge/text/tokenizer/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace kedge {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Vocab vocab_of(const std::vector<std::string>& tokens) {
  Vocab vocab;
  for (size_t i = 0; i < tokens.size(); ++i) EXPECT_TRUE(vocab.add(tokens[i], static_cast<TokenId>(i)));
  return vocab;
}

TokenIds encode(const BpeModel& model, std::string_view word) {
  TokenIds ids, again;
  const std::vector<WordSpan> words = {{0, word.size()}};
  model.encode(word, words, ids);
  model.encode(word, words, again);
  EXPECT_EQ(ids, again) << "remembered wrongly";
  return ids;
}

const BpeModel::TextMerges kMerges = {{"a", "b"}, {"ab", "c"}};

TEST(Bpe, MergesCharactersIntoTokens) {
  const BpeModel model(vocab_of({"a", "b", "c", "ab", "abc", "\u00E9"}), kMerges, {}, "here");
  EXPECT_THAT(encode(model, "abcab\u00E9"), ElementsAre(4, 3, 5));
  EXPECT_THAT(encode(model, ""), IsEmpty());
}

TEST(Bpe, UnknownCharactersVanishOrBecomeUnk) {
  EXPECT_THAT(encode(BpeModel(vocab_of({"a", "b", "c", "ab", "abc"}), kMerges, {}, "here"), "axyb"), ElementsAre(3));
  const std::vector<std::string> tokens = {"a", "b", "c", "ab", "abc", "<unk>"};
  EXPECT_THAT(encode(BpeModel(vocab_of(tokens), kMerges, {.unk_token = "<unk>"}, "here"), "axyb"), ElementsAre(0, 5, 5, 1));
  EXPECT_THAT(encode(BpeModel(vocab_of(tokens), kMerges, {.unk_token = "<unk>", .fuse_unk = true}, "here"), "axyb"), ElementsAre(0, 5, 1));
  EXPECT_EQ(testing::error_of([&] { return encode(BpeModel(vocab_of(tokens), kMerges, {.unk_token = "?"}, "here"), "x"); }),
            "the text has a character that is not in the vocabulary, and its unk_token \"?\" is not either");
}

TEST(Bpe, FallsBackToBytesWhereTheVocabularyHasThemAll) {
  const BpeModel model(vocab_of({"a", "<0xC3>", "<0xA9>", "<unk>"}), {}, {.unk_token = "<unk>", .byte_fallback = true}, "here");
  EXPECT_THAT(encode(model, "a\u00E9a"), ElementsAre(0, 1, 2, 0));
  EXPECT_THAT(encode(model, "a\u00E8a"), ElementsAre(0, 3, 0));          // C3 A8
  EXPECT_THAT(encode(model, "\u00E8\u00E9a"), ElementsAre(1, 2, 3, 0));  // the unknown one waits for the next known one, as in tokenizers
}

TEST(Bpe, AWordThatIsATokenStandsForItself) {
  const std::vector<std::string> tokens = {"a", "b", "c", "ab", "abc", "cab"};
  EXPECT_THAT(encode(BpeModel(vocab_of(tokens), kMerges, {}, "here"), "cab"), ElementsAre(2, 3));
  EXPECT_THAT(encode(BpeModel(vocab_of(tokens), kMerges, {.ignore_merges = true}, "here"), "cab"), ElementsAre(5));
}

TEST(Bpe, SpellsTheEndsOfAWordDifferently) {
  const BpeModel suffixed(vocab_of({"a", "b", "b</w>", "ab</w>"}), {{"a", "b</w>"}}, {.end_of_word_suffix = "</w>"}, "here");
  EXPECT_THAT(encode(suffixed, "ab"), ElementsAre(3));
  EXPECT_THAT(encode(suffixed, "bb"), ElementsAre(1, 2));
  const BpeModel prefixed(vocab_of({"a", "##b", "ab"}), {{"a", "##b"}}, {.continuing_subword_prefix = "##"}, "here");
  EXPECT_THAT(encode(prefixed, "abb"), ElementsAre(2, 1));
}

TEST(Bpe, WordsMayBePlainBytes) {
  const BpeModel model(vocab_of({"\u0120", "\u00C3", "\u00A9", "\u00C3\u00A9", "\u0120\u00C3\u00A9"}),
                       {{"\u00C3", "\u00A9"}, {"\u0120", "\u00C3\u00A9"}}, {.ignore_merges = true, .words_are_bytes = true}, "here");
  EXPECT_THAT(encode(model, " \u00E9"), ElementsAre(4));
  EXPECT_THAT(encode(model, "\u00E9 "), ElementsAre(3, 0));
}

TEST(Bpe, LongWordsFallApartWithoutChangingTheIds) {
  const BpeModel model(vocab_of({"a", "b", "c", "ab", "abc", "\u2581", "\u2581a", "<unk>"}), {{"a", "b"}, {"ab", "c"}, {"\u2581", "a"}},
                       {.unk_token = "<unk>", .fuse_unk = true}, "here");
  std::string word;
  TokenIds expected;
  for (int i = 0; i < 100; ++i) {
    word += "\u2581a\u2581abcxxa";  // in the second word ab merges before the mark and a do
    expected.insert(expected.end(), {6, 5, 4, 7, 0});
  }
  EXPECT_EQ(encode(model, word), expected);
}

TEST(Bpe, NamesAMergeThatCannotBe) {
  EXPECT_EQ(testing::error_of([] {
              return BpeModel(vocab_of({"a", "b"}), {{"a", "b"}}, {}, "here");
            }),
            "here.merges[0]: the token \"ab\" is not in the vocabulary");
}

}  // namespace
}  // namespace kedge
